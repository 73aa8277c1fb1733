"""Straightforward readers of protobuf traces, of whole files in memory, for comparison with `ipu-report import`."""


def fields(data, at=0, end=None):
    """(number, wire type, value) of a message; ends at the first malformed one."""
    end = len(data) if end is None else end
    while at < end:
        key, at = varint(data, at, end)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise ValueError(f"byte {at}: no field")
        if kind == 0:
            value, at = varint(data, at, end)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if at + size > end:
                raise ValueError(f"byte {at}: it ends")
            value, at = int.from_bytes(data[at:at + size], "little"), at + size
        elif kind == 2:
            size, at = varint(data, at, end)
            if at + size > end:
                raise ValueError(f"byte {at}: it ends")
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"byte {at}: wire type {kind}")
        yield number, kind, value


def varint(data, at, end):
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & (1 << 64) - 1, at
    raise ValueError(f"byte {at}: no varint")


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def all_of(message, number):
    return [value for n, _, value in fields(message) if n == number]


def last_of(message, number, default):
    return ([default] + all_of(message, number))[-1]


def text(data):
    return data.decode("utf-8", "replace")


def xplane(data):
    """[(line, event, start_ns, dur_ns; None: an instant)], and the number of events."""
    rows, count = [], 0
    for plane in all_of(data, 1):
        names = {}
        for entry in all_of(plane, 4):
            message = last_of(entry, 2, b"")
            names[signed(last_of(entry, 1, 0))] = text(last_of(message, 4, b"") or last_of(message, 2, b""))
        for line in all_of(plane, 3):
            stamp = signed(last_of(line, 3, 0))
            name = text(last_of(line, 11, b"") or last_of(line, 2, b""))
            for event in all_of(line, 4):
                count += 1
                if all_of(event, 5):  # the sum of several, without a time
                    continue
                start = stamp * 1000 + signed(last_of(event, 2, 0))
                dur = signed(last_of(event, 3, 0))
                rows.append((name, names[signed(last_of(event, 1, 0))], start // 1000,
                             (start + dur) // 1000 - start // 1000 if dur else None))
    return rows, count
