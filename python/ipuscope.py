"""ipuscope: record what a Python program does, and its tensors, into one SQLite file.

    import ipuscope
    ipuscope.record("run.db")
    ipuscope.watch(model, optimizer)            # a PyTorch module, every layer of it

and, where there is more to tell:

    with ipuscope.span("load"):                 # a span of the calling thread, also @span("load")
        ...
    ipuscope.look("fc1.weight.grad", tensor)    # statistics and health rules of an array
    ipuscope.loss(loss)

ipu-view, ipu-report and sqlite3 read the file while it is written and after. Without record() all
functions do nothing.

It calls libipuscope-outfeed.so.0 through ctypes and needs neither numpy nor PyTorch: look() takes
tensors of PyTorch, and anything that has numpy's __array_interface__. Contiguous arrays in this
machine's memory are read where they lie; others are copied.

Threads: any function may be called by any thread. Keys (step, epoch, mode) are the program's.
"""
import atexit
import ctypes
import functools
import os
import sys
import sysconfig
import threading

__all__ = ["Error", "close", "epoch_loss", "hits", "keys", "look", "loss", "meta", "record", "span", "watch"]

NULL = -(2 ** 63)
MODES = {None: 0, "train": 1, "evaluate": 2, "predict": 3}
KINDS = {"activation": 0, "gradient": 1, "weight": 2, "optimizer_state": 3}
ACTIVITIES = {None: 0, "relu": 1, "tanh": 2, "sigmoid": 3}
# Of numpy's type strings without byte order, and of the names of PyTorch's types.
DTYPES = {"f4": 0, "f2": 1, "f8": 3, "i1": 4, "u1": 5, "i2": 6, "i4": 7, "i8": 8, "b1": 9}
TORCH_DTYPES = {"float32": 0, "float16": 1, "bfloat16": 2, "float64": 3, "int8": 4, "uint8": 5, "int16": 6,
                "int32": 7, "int64": 8, "bool": 9}
SHAPES_OF_A_KEY = 64
MESSAGE = 512


class Error(Exception):
    """A call of the library that failed, with its one line."""


# ---- the library --------------------------------------------------------------------------------------------


class _Keys(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in
                ("epoch", "execution", "weight_update", "step", "microbatch", "replica", "ipu", "stage")]
    _fields_ += [("mode", ctypes.c_uint8), ("phase", ctypes.c_char)]


class _RecordingParams(ctypes.Structure):
    _fields_ = [("command", ctypes.c_char_p), ("rank", ctypes.c_int64), ("ring_slots", ctypes.c_uint32),
                ("commit_ms", ctypes.c_uint32), ("finish_ms", ctypes.c_uint32), ("row_queue_bytes", ctypes.c_uint64),
                ("on_commit", ctypes.c_void_p), ("user", ctypes.c_void_p), ("alone", ctypes.c_int)]


class _Hit(ctypes.Structure):
    _fields_ = [("rule", ctypes.c_char_p), ("key", ctypes.c_char_p), ("layer", ctypes.c_char_p), ("keys", _Keys),
                ("time_ns", ctypes.c_int64), ("value", ctypes.c_double), ("threshold", ctypes.c_double)]


_SAY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_HIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Hit))
_FAILED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class _OutfeedParams(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("capture", ctypes.c_char_p), ("health", ctypes.c_char_p),
                ("without_health", ctypes.c_int), ("replicas", ctypes.c_int), ("budget", ctypes.c_int64),
                ("say", _SAY), ("hit", _HIT), ("user", ctypes.c_void_p)]


class _TensorParams(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("queue", ctypes.c_char_p), ("key", ctypes.c_char_p),
                ("kind", ctypes.c_int), ("dtype", ctypes.c_int), ("activity", ctypes.c_int),
                ("layer", ctypes.c_char_p), ("stage", ctypes.c_int64), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("ndim", ctypes.c_int)]


class _Layer(ctypes.Structure):
    _fields_ = [("layer", ctypes.c_char_p), ("class_name", ctypes.c_char_p), ("position", ctypes.c_int64),
                ("stage", ctypes.c_int64), ("output_shape", ctypes.c_char_p), ("params", ctypes.c_int64),
                ("trainable_params", ctypes.c_int64), ("flops", ctypes.c_int64)]


class _Operation(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("operation", "layer", "kind", "phase")]
    _fields_ += [(name, ctypes.c_int64) for name in ("stage", "flops", "cycles", "compute_cycles", "exchange_cycles",
                                                     "sync_cycles", "bytes_exchanged", "tiles_used")]
    _fields_ += [("tile_balance", ctypes.c_double), ("code_bytes", ctypes.c_int64)]


LAYER_TABLE, OPERATION_TABLE = 1, 2  # of enum ips_table


def _library_paths():
    """The library beside this module's installation first, then wherever the system finds it."""
    folders = [os.environ.get("IPUSCOPE_LIBRARY_DIR")]
    here = os.path.dirname(os.path.abspath(__file__))  # PREFIX/lib/python3/dist-packages
    multiarch = sysconfig.get_config_var("MULTIARCH")
    lib = os.path.dirname(os.path.dirname(here))
    folders += [os.path.join(lib, multiarch) if multiarch else None, lib, lib + "64"]
    name = "libipuscope-outfeed.so.0"
    for folder in folders:
        path = os.path.join(folder, name) if folder else ""
        if folder and os.path.exists(path):
            yield path
    yield name


def _load():
    for path in _library_paths():
        try:
            lib = ctypes.CDLL(path)
        except OSError as failed:
            why = failed
            continue
        text, pointer, number, size = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t
        keys = ctypes.POINTER(_Keys)
        for name, result, arguments in (
                ("ips_recording_params_defaults", None, [ctypes.POINTER(_RecordingParams)]),
                ("ips_recording_open", ctypes.c_int, [ctypes.POINTER(pointer), text, ctypes.POINTER(_RecordingParams),
                                                      text, size]),
                ("ips_recording_close", ctypes.c_int, [pointer, text, size]),
                ("ips_recording_on_failure", None, [pointer, _FAILED, pointer]),
                ("ips_meta_set", ctypes.c_int, [pointer, text, text]),
                ("ips_append", ctypes.c_int, [pointer, ctypes.c_int, pointer, size]),
                ("ips_site_intern", pointer, [text, text, text]),
                ("ips_thread_track", pointer, [pointer, text]),
                ("ips_thread_set_keys", None, [pointer, keys]),
                ("ips_track_begin", None, [pointer, pointer]),
                ("ips_track_end", None, [pointer]),
                ("ips_memory_sample", None, [pointer]),
                ("ips_outfeed_open", ctypes.c_int, [ctypes.POINTER(pointer), pointer, ctypes.POINTER(_OutfeedParams),
                                                    text, size]),
                ("ips_outfeed_close", ctypes.c_int, [pointer, text, size]),
                ("ips_outfeed_status", ctypes.c_int, [pointer, text, size]),
                ("ips_outfeed_tensor", ctypes.c_int, [pointer, ctypes.POINTER(pointer), ctypes.POINTER(_TensorParams),
                                                      text, size]),
                ("ips_outfeed_due", ctypes.c_int, [pointer, keys]),
                ("ips_outfeed_record", ctypes.c_int, [pointer, keys, pointer, size]),
                ("ips_outfeed_loss", ctypes.c_int, [pointer, keys, ctypes.c_double]),
                ("ips_outfeed_epoch", ctypes.c_int, [pointer, keys, ctypes.c_double,
                                                     ctypes.POINTER(ctypes.c_double)]),
                ("ips_outfeed_broken", number, [pointer, text])):
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        return lib
    raise Error(f"{why}: set IPUSCOPE_LIBRARY_DIR to the folder of libipuscope-outfeed.so.0")


def _text(value):
    return None if value is None else str(value).encode()


def _check(status, message):
    if status != 0:
        raise Error(message.value.decode(errors="replace") or f"status {status}")


# ---- a recording ----------------------------------------------------------------------------------------------------

_lib = None
_run = None  # the open recording; None: everything is off
_sites = {}  # (category, name, operation): the library's call site
_local = threading.local()  # run, track, version of keys, open: spans of modules that have not ended


class _Entry:
    """A registered tensor; `handle` None: its tier is off."""
    __slots__ = ("handle", "shape", "row", "dtype")


class _Run:
    def __init__(self, path, command, capture, health, budget, on_hit, quiet):
        self.pid, self.lock, self.tensors = os.getpid(), threading.Lock(), {}
        self.keys, self.version = _Keys(*[NULL] * 8, 0, b"\0"), 0
        self.counts, self.counted = {}, True  # steps of each mode; whether watch() counts them
        self.waiting, self.on_hit, self.quiet, self.crowded = [], on_hit, quiet, set()
        self.recording, self.outfeed = ctypes.c_void_p(), ctypes.c_void_p()
        message = ctypes.create_string_buffer(MESSAGE)
        params = _RecordingParams()
        _lib.ips_recording_params_defaults(ctypes.byref(params))
        params.command = _text(command)
        _check(_lib.ips_recording_open(ctypes.byref(self.recording), os.fsencode(path), ctypes.byref(params), message,
                                       MESSAGE), message)
        # What the library calls must live as long as it may call.
        self.say, self.hit, self.failed = _SAY(self._say), _HIT(self._hit), _FAILED(self._failed)
        _lib.ips_recording_on_failure(self.recording, self.failed, None)
        outfeed = _OutfeedParams(ctypes.sizeof(_OutfeedParams), _text(capture), _text(health or None),
                                 1 if health is False else 0, 1, budget, self.say, self.hit, None)
        status = _lib.ips_outfeed_open(ctypes.byref(self.outfeed), self.recording, ctypes.byref(outfeed), message,
                                       MESSAGE)
        if status != 0:
            _lib.ips_recording_close(self.recording, None, 0)
            os.unlink(path)
            _check(status, message)

    def _print(self, line):
        if not self.quiet:
            print(f"ipuscope: {line}", file=sys.stderr)

    def _say(self, _, line):
        self._print(line.decode(errors="replace"))

    def _failed(self, _, status, message):
        self._print(f"recording has ended: {message.decode(errors='replace')}")

    def _hit(self, _, hit):
        if self.on_hit:
            hit = hit.contents
            name = [None if text is None else text.decode(errors="replace") for text in (hit.rule, hit.key)]
            step = None if hit.keys.step == NULL else hit.keys.step
            self.waiting.append((name[0], name[1], step, hit.value, hit.threshold))

    def report_hits(self):
        """Call the program about broken rules, when the library has returned: it may call us."""
        while self.waiting:
            self.on_hit(*self.waiting.pop(0))

    def track(self):
        """The calling thread's track, with the present keys."""
        local = _local
        if getattr(local, "run", None) is not self:
            local.run, local.version, local.open = self, -1, 0
            local.track = _lib.ips_thread_track(self.recording, _text(threading.current_thread().name))
        if local.version != self.version:
            local.version = self.version
            _lib.ips_thread_set_keys(self.recording, self.keys)
        return local.track

    def close(self):
        message = ctypes.create_string_buffer(MESSAGE)
        status = _lib.ips_outfeed_close(self.outfeed, message, MESSAGE)
        first = ctypes.create_string_buffer(MESSAGE)
        _check(_lib.ips_recording_close(self.recording, first, MESSAGE), first)
        _check(status, message)

    def register(self, key, shape, dtype, kind, layer, activity):
        entry = _Entry()
        entry.shape, entry.dtype, entry.row = shape, dtype, 1
        for size in shape[1:]:
            entry.row *= size
        params = _TensorParams(ctypes.sizeof(_TensorParams), None, _text(key), KINDS[kind], dtype, ACTIVITIES[activity],
                               _text(layer), NULL, (ctypes.c_int64 * len(shape))(*shape), len(shape))
        message, handle = ctypes.create_string_buffer(MESSAGE), ctypes.c_void_p()
        _check(_lib.ips_outfeed_tensor(self.outfeed, ctypes.byref(handle), ctypes.byref(params), message, MESSAGE),
               message)
        entry.handle = handle if handle.value else None
        return entry

    def entry(self, key, shape, dtype, kind, layer, activity):
        """The registered tensor that a value of this shape fits: the key's, or one of its name and shape."""
        entries = self.tensors.setdefault(key, [])
        for entry in entries:
            if entry.dtype == dtype and (entry.shape == shape or (
                    len(shape) > 0 and len(shape) == len(entry.shape) and entry.shape[1:] == shape[1:] and
                    shape[0] < entry.shape[0])):
                return entry
        if len(entries) == SHAPES_OF_A_KEY:
            if key not in self.crowded:
                self.crowded.add(key)
                self._print(f"{key}: it had {SHAPES_OF_A_KEY} shapes; more are not recorded")
            return None
        name = key if not entries else f"{key} {shape}"
        entries.append(self.register(name, shape, dtype, kind, layer, activity))
        return entries[-1]

    def look(self, key, address, shape, dtype, kind, layer, activity):
        if len(shape) > 8:
            count = 1
            for size in shape[7:]:
                count *= size
            shape = shape[:7] + (count,)
        if 0 in shape:
            return
        with self.lock:
            entry = self.entry(key, shape, dtype, kind, layer, activity)
            if entry is not None and entry.handle is not None:
                count = entry.row * shape[0] if shape else 1
                if _lib.ips_outfeed_record(entry.handle, self.keys, address, count) != 0:
                    message = ctypes.create_string_buffer(MESSAGE)
                    _check(_lib.ips_outfeed_status(self.outfeed, message, MESSAGE), message)
        if self.waiting:
            self.report_hits()


def record(path, command=None, capture="stats", health=None, budget=0, on_hit=None, quiet=False):
    """Open the recording @path, which must not exist; it is closed by close() or when the program ends.

    capture: which tensors are recorded at which tier: a tier (off, health, counts, stats, histogram, full, last N), or
    rules as JSON text. health: changes of the health rules as JSON text; False: no rules. budget: limit of bytes, beyond
    which tiers are lowered. on_hit(rule, key, step, value, threshold) is called when a rule is broken. quiet: print no
    line about broken rules and lowered tiers to stderr. docs/outfeed-api.md has all of these.
    """
    global _lib, _run
    if _run is not None:
        raise Error("a recording is open already")
    if _lib is None:
        _lib = _load()
        atexit.register(close)
        os.register_at_fork(after_in_child=_forget)
    _run = _Run(path, command if command is not None else " ".join(sys.argv), capture, health, budget, on_hit, quiet)


def _forget():
    """In a forked child: the recording belongs to the parent."""
    global _run
    _run = None


def close():
    """Finish the file. Raises Error with the first failure of the whole recording. Without a recording nothing happens."""
    global _run
    run, _run = _run, None
    if run is not None:
        run.close()


def meta(key, value):
    """Set a fact of the run: `model`, `dataset`, `batch_size` and others appear on the Summary."""
    if _run is not None and _lib.ips_meta_set(_run.recording, _text(key), _text(value)) != 0:
        raise Error(f"meta {key}: not a fact that a program may set, or writing has failed")


def keys(**values):
    """Set keys of everything recorded from now on: mode ("train", "evaluate", "predict"), epoch (from 1), step,
    weight_update, microbatch, replica, stage, execution (from 0). None: unknown. Setting `step` ends the counting of steps
    by watch()."""
    run = _run
    if run is None:
        return
    if "step" in values:
        run.counted = False
    for name, value in values.items():
        if name == "mode":
            run.keys.mode = MODES[value]
        elif name in dict(_Keys._fields_) and name != "phase":
            setattr(run.keys, name, NULL if value is None else value)
        else:
            raise TypeError(f"keys: {name} is none")
    run.version += 1
    _lib.ips_memory_sample(run.track())


def loss(value):
    """Record the loss of the step, a number or a tensor of one, and check the rules about losses."""
    run = _run
    if run is not None:
        with run.lock:
            _lib.ips_outfeed_loss(run.outfeed, run.keys, float(value))
        run.report_hits()


def epoch_loss(value, val_loss=None):
    """Record the loss of the epoch, and of its validation."""
    run = _run
    if run is not None:
        validation = None if val_loss is None else ctypes.byref(ctypes.c_double(float(val_loss)))
        with run.lock:
            _lib.ips_outfeed_epoch(run.outfeed, run.keys, float(value), validation)
        run.report_hits()


def hits(rule=None):
    """How often @rule was broken so far; None: any rule."""
    return 0 if _run is None else _lib.ips_outfeed_broken(_run.outfeed, _text(rule))


# ---- spans ----------------------------------------------------------------------------------------------------------


def _site(category, name, operation):
    site = _sites.get((category, name, operation))
    if site is None and _lib is not None:
        site = _sites[category, name, operation] = _lib.ips_site_intern(_text(category), _text(name), _text(operation))
    return site


class span:
    """A span of the calling thread, for `with` or as a decorator. operation: the layer that it belongs to."""
    __slots__ = ("what",)

    def __init__(self, name, category="span", operation=None):
        self.what = (category, name, operation)

    def __enter__(self):
        run = _run
        if run is not None:
            _lib.ips_track_begin(run.track(), _sites.get(self.what) or _site(*self.what))
        return self

    def __exit__(self, *_):
        run = _run
        if run is not None:
            _lib.ips_track_end(run.track())
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def spanned(*args, **kwargs):
            with self:
                return function(*args, **kwargs)
        return spanned


# ---- tensors --------------------------------------------------------------------------------------------------------

_torch_dtypes = {}  # of torch.dtype


def _torch_dtype(dtype):
    code = _torch_dtypes.get(dtype)
    if code is None:
        code = _torch_dtypes[dtype] = TORCH_DTYPES.get(str(dtype).rpartition(".")[2], -1)
    return code


def _look_at_torch(run, key, tensor, kind, layer, activity):
    """Tensors elsewhere (a GPU's), sparse, of gaps or of other types become contiguous ones of this machine first."""
    if tensor.device.type != "cpu" or tensor.layout is not _strided(tensor) or not tensor.is_contiguous():
        tensor = tensor.detach()
        tensor = (tensor.to_dense() if tensor.layout is not _strided(tensor) else tensor).cpu().contiguous()
    dtype = _torch_dtype(tensor.dtype)
    if dtype < 0:
        tensor = tensor.detach()
        tensor = _view_as_real(tensor) if tensor.is_complex() else tensor.float()
        tensor, dtype = tensor.contiguous(), _torch_dtype(tensor.dtype)
    run.look(key, tensor.data_ptr(), tuple(tensor.shape), dtype, kind, layer, activity)


def _strided(tensor):
    return sys.modules["torch"].strided


def _view_as_real(tensor):
    return sys.modules["torch"].view_as_real(tensor.resolve_conj())


def _look_at_array(run, key, array, kind, layer, activity):
    interface = getattr(array, "__array_interface__", None)
    order = ">" if sys.byteorder == "little" else "<"
    if interface is None or interface.get("strides") is not None or interface["typestr"][0] == order or \
            interface["typestr"][1:] not in DTYPES:
        import numpy
        array = numpy.ascontiguousarray(array)
        if array.dtype.kind == "c":
            array = array.view(array.real.dtype)
        elif array.dtype.kind == "u" and array.dtype.itemsize > 1 or array.dtype.str[1:] not in DTYPES:
            array = array.astype("f8")
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        interface = array.__array_interface__
    run.look(key, interface["data"][0], tuple(interface["shape"]), DTYPES[interface["typestr"][1:]], kind, layer, activity)


def look(key, value, kind=None, layer=None, activity=None):
    """Record the statistics of an array and check the health rules: a tensor of PyTorch, an array of numpy, or what numpy
    makes an array of. kind: "activation", "gradient", "weight" or "optimizer_state"; None: a gradient if the key ends with
    "grad", else an activation. activity: "relu", "tanh" or "sigmoid", of an activation whose dead neurons are of interest.
    Record a value that is computed from another one after that: the first bad number is the first in that order.
    """
    run = _run
    if run is None:
        return
    if kind is None:
        kind = "gradient" if key.endswith("grad") else "activation"
    reader = _look_at_torch if hasattr(value, "data_ptr") else _look_at_array
    reader(run, key, value, kind, layer, activity)


# ---- PyTorch --------------------------------------------------------------------------------------------------------


def _tensors_of(name, output):
    """The tensors of real numbers in what a module returns, with their keys."""
    if hasattr(output, "data_ptr"):
        return [(name, output)] if output.is_floating_point() else []
    if isinstance(output, dict):
        return [found for key, item in output.items() for found in _tensors_of(f"{name}[{key}]", item)]
    if isinstance(output, (tuple, list)):
        return [found for i, item in enumerate(output) for found in _tensors_of(f"{name}[{i}]", item)]
    return []


class _Backward:
    """The backward pass in spans of layers: a layer's begins when the gradient of its output is there and ends when the
    next one's begins, or with the pass."""

    def __init__(self):
        self.thread = None  # in which a span is open

    def begin(self, run, operation):
        here = threading.get_ident()
        if self.thread == here:
            _lib.ips_track_end(run.track())
        else:
            sys.modules["torch"].autograd.Variable._execution_engine.queue_callback(self.end)
        self.thread = here
        _lib.ips_track_begin(run.track(), _site("backward", operation, operation))

    def end(self):
        run = _run
        if run is not None and self.thread == threading.get_ident():
            _lib.ips_track_end(run.track())
        self.thread = None


def _begin_step(run, training):
    """A call of the model is a step of the mode it is in."""
    mode = "train" if training else "evaluate"
    if run.counted:
        run.counts[mode] = run.counts.get(mode, -1) + 1
        run.keys.step, run.keys.mode = run.counts[mode], MODES[mode]
        run.version += 1
    _lib.ips_memory_sample(run.track())


def _append_layer(run, position, name, module, output, own):
    shapes = _tensors_of(name, output)
    layer, kind = _text(name), _text(type(module).__name__)
    row = _Layer(layer, kind, position, NULL, _text(tuple(shapes[0][1].shape)) if shapes else None,
                 sum(p.numel() for p in own), sum(p.numel() for p in own if p.requires_grad), NULL)
    _lib.ips_append(run.recording, LAYER_TABLE, ctypes.byref(row), 1)
    for operation, phase in ((layer, b"F"), (layer + b"/backward", b"B")):
        row = _Operation(operation, layer, kind, phase, *[NULL] * 8, float("nan"), NULL)
        _lib.ips_append(run.recording, OPERATION_TABLE, ctypes.byref(row), 1)


def _watch_module(handles, position, name, module, root, options, backward):
    own = list(module.parameters(recurse=False))
    is_layer = bool(own) or not any(module.children())
    operation = name if is_layer else None
    activity = type(module).__name__.lower()
    activity = activity if activity in ACTIVITIES else None
    told = []

    def before(module, _inputs):
        run = _run
        if run is None:
            return
        if module is root:
            run.track()
            while _local.open > 0:  # left open by a forward that raised an exception
                _local.open -= 1
                _lib.ips_track_end(_local.track)
            _begin_step(run, module.training)
        if options["spans"]:
            _lib.ips_track_begin(run.track(), _site("forward", name, operation))
            _local.open += 1

    def after(module, _inputs, output):
        run = _run
        if run is None:
            return
        if options["spans"] and getattr(_local, "open", 0) > 0:
            _local.open -= 1
            _lib.ips_track_end(run.track())
        if not is_layer:
            return
        if run not in told:
            told[:] = [run]
            _append_layer(run, position, name, module, output, own)
        for key, tensor in _tensors_of(name, output):
            if options["activations"]:
                _look_at_torch(run, key, tensor, "activation", name, activity)
            if tensor.requires_grad and (options["spans"] or options["activation_gradients"]):
                tensor.register_hook(functools.partial(arrived, key))

    def arrived(key, gradient):
        run = _run
        if run is None:
            return
        if options["spans"]:
            backward.begin(run, name + "/backward")
        if options["activation_gradients"]:
            _look_at_torch(run, key + ".output.grad", gradient, "gradient", name, None)

    handles.append(module.register_forward_pre_hook(before))
    handles.append(module.register_forward_hook(after))


def _watch_gradient(handles, key, layer, parameter):
    def arrived(gradient):
        run = _run
        if run is not None:
            _look_at_torch(run, key, gradient, "gradient", layer, None)
    handles.append(parameter.register_hook(arrived))


def _watch_optimizer(optimizer, parameters):
    """Each step() is a weight update, after which the weights are recorded."""
    import types
    step = optimizer.step

    @functools.wraps(step)
    def spanned(_self, *args, **kwargs):
        run = _run
        if run is None:
            return step(*args, **kwargs)
        with span("step", "optimizer"):
            result = step(*args, **kwargs)
        for key, layer, parameter in parameters:
            _look_at_torch(run, key, parameter, "weight", layer, None)
        run.keys.weight_update = 1 + max(run.keys.weight_update, 0)
        run.version += 1
        return result

    optimizer.step = types.MethodType(spanned, optimizer)  # as schedulers of learning rates replace it
    return step


class watch:
    """Watch a PyTorch module: a span for each module's forward and each layer's backward, the activations of all layers,
    the gradients of all parameters and, if the optimizer is given, its steps and the weights after each. Layers are modules
    that have parameters of their own or no modules in them. A call of the model begins a step, unless keys(step=...) was
    set. remove() ends it.
    """

    def __init__(self, model, optimizer=None, activations=True, gradients=True, activation_gradients=False, spans=True,
                 name="model"):
        options = {"activations": activations, "activation_gradients": activation_gradients, "spans": spans}
        self.handles, self.optimizer, parameters = [], optimizer, []
        backward = _Backward()
        for position, (path, module) in enumerate(model.named_modules()):
            layer = path or name
            _watch_module(self.handles, position, layer, module, model, options, backward)
            for own, parameter in module.named_parameters(recurse=False):
                parameters.append((f"{layer}.{own}", layer, parameter))
                if gradients and parameter.requires_grad:
                    _watch_gradient(self.handles, f"{layer}.{own}.grad", layer, parameter)
        if optimizer is not None:
            self.step = _watch_optimizer(optimizer, parameters)
            if _run is not None and _run.keys.weight_update == NULL:
                keys(weight_update=0)
        meta("model", type(model).__name__)

    def remove(self):
        for handle in self.handles:
            handle.remove()
        if self.optimizer is not None:
            self.optimizer.step = self.step
        self.handles, self.optimizer = [], None
