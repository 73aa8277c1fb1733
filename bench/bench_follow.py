#!/usr/bin/env python3
"""What being watched costs a run, told from inside one run.

A trainer (or make_database, which does nothing but record) runs for as long as is asked, with `ipu-view --follow` on it in a terminal of
250x60. In every other second the viewer is stopped (SIGSTOP), so that each second with it stands beside one without: a machine that gets
slower or faster in between does not count. How much was done in a second is read from the recording: training steps from `executions`, or
events from `overhead`. Prints the median over all pairs of seconds of watched / alone (rates; below 1: slower when watched), how sure that
is (the interval that holds the median nineteen times in twenty, by order statistics), and what the viewer took of one processor. Last, how
much longer the recording takes to close with a viewer on it.

Usage: bench_follow.py BIN_DIR RUN|make_database [SECONDS [SCREEN [KEY VALUE ...]]]
  RUN: a run file, as for ipu-train; KEY VALUE: more of ipu-train's options. Many short executions measure best, for example
  bench/bench_follow.py build/release/bin examples/inspect-tensors.json 120 timeline \\
      --data.path DIR --compile.steps_per_execution 100 --fit.steps_per_epoch 1000 --fit.epochs 100000
"""
import fcntl
import glob
import os
import pty
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

WINDOW = 1.0
EDGE = 0.1  # of a window that is not counted: what was begun before comes to its end
EVERYTHING = '{"autoReport.all":"true","autoReport.directory":"report"}'
RATES = {
    "steps": "SELECT start_ns, dur_ns, steps FROM executions WHERE mode = 'train' AND dur_ns IS NOT NULL ORDER BY start_ns",
    "events": "SELECT time_ns, 0, events FROM overhead ORDER BY time_ns",
}


class Viewer:
    """ipu-view on a database, its output read and thrown away."""

    def __init__(self, program, database, screen):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 250, 0, 0))
            os.execv(program, [program, "--follow", "--view", screen, database])
        self.thread = threading.Thread(target=self.drain, daemon=True)
        self.thread.start()

    def drain(self):
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass

    def signal(self, number):
        os.kill(self.pid, number)

    def quit(self):
        """Its processor seconds."""
        os.write(self.terminal, b"Q")
        usage = os.wait4(self.pid, 0)[2]
        return usage.ru_utime + usage.ru_stime


def started(command):
    """The process and its database, once there is something to look at."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open("said", "w"))
    viewer = os.path.join(os.path.dirname(command[0]), "ipu-view")
    while process.poll() is None:
        found = glob.glob("report/*/profile.db") + glob.glob("big.db")
        if found and subprocess.run([viewer, found[0], "--text"], capture_output=True).returncode == 0:
            return process, found[0]
        time.sleep(0.05)
    sys.exit("bench_follow: " + open("said").read())


def read(database, what):
    with sqlite3.connect("file:" + database + "?mode=ro", uri=True) as connection:
        began = int(connection.execute("SELECT value FROM meta WHERE key = 'start_epoch_ns'").fetchone()[0])
        return [((began + at) / 1e9, took / 1e9, done) for at, took, done in connection.execute(RATES[what])]


def rate(rows, begin, end):
    """What was done per second between the first and the last row that lie in the window; None: too few."""
    inside = [row for row in rows if row[0] >= begin and row[0] + row[1] <= end]
    if len(inside) < 4:
        return None
    if inside[0][1]:  # done from its start to its end
        return sum(row[2] for row in inside) / (inside[-1][0] + inside[-1][1] - inside[0][0])
    return sum(row[2] for row in inside[1:]) / (inside[-1][0] - inside[0][0])


def median_and_interval(values):
    values = sorted(values)
    count = len(values)
    away = 0.98 * count**0.5  # of a binomial's 1.96 deviations, in places
    low, high = max(0, int(count / 2 - away)), min(count - 1, int(count / 2 + away))
    middle = (values[(count - 1) // 2] + values[count // 2]) / 2
    return middle, values[low], values[high]


def watched(command, what, seconds, screen):
    """Windows (begin, end, watched?), the viewer's seconds, and how long the run took to close."""
    process, database = started(command)
    viewer = Viewer(os.path.join(os.path.dirname(command[0]), "ipu-view"), database, screen)
    time.sleep(1)
    windows = []
    for number in range(2 * int(seconds / 2 / WINDOW)):
        on = number % 4 in (0, 3)  # on off off on: what drifts steadily cancels
        viewer.signal(signal.SIGCONT if on else signal.SIGSTOP)
        begin = time.time()
        time.sleep(WINDOW)
        windows.append((begin + EDGE * WINDOW, time.time(), on))
    viewer.signal(signal.SIGCONT)
    used = viewer.quit()
    process.kill()
    process.wait()
    rows = read(database, what)
    rates = [(rate(rows, begin, end), on) for begin, end, on in windows]
    pairs = [(a, b) for a, b in zip(rates[::2], rates[1::2]) if a[0] and b[0]]
    if len(pairs) < 5:
        sys.exit("bench_follow: too few executions in a second, or too short a run, to compare")
    ratios = [a[0] / b[0] if a[1] else b[0] / a[0] for a, b in pairs]
    middle, low, high = median_and_interval(ratios)
    alone = sum(b[0] if a[1] else a[0] for a, b in pairs) / len(pairs)
    print(f"{what} per second, watched / alone, median of {len(pairs)} pairs: {middle:.4f} ({low:.4f} to {high:.4f}); "
          f"{alone:,.0f} alone; the viewer ({screen}) took {100 * used / (seconds / 2):.2f} % of a processor")


def closing(program, pairs=7):
    """Wall time of a whole small recording with and without a viewer on it, its end included."""
    times = {False: [], True: []}
    for number in range(pairs):
        for on in (number % 2 == 0, number % 2 != 0):
            subprocess.run("rm -f big.db*", shell=True, check=True)
            command = [program, "big.db", "--spans", "3M"]
            began = time.time()
            if on:
                process, database = started(command)
                viewer = Viewer(os.path.join(os.path.dirname(program), "ipu-view"), database, "timeline")
                process.wait()
            else:
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[on].append(time.time() - began)
            if on:
                viewer.quit()
    middle, low, high = median_and_interval([on / off for on, off in zip(times[True], times[False])])
    print(f"a whole recording of 3 M spans and its closing, watched / alone (time), median of {pairs}: {middle:.3f} ({low:.3f} to {high:.3f})")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    binaries, run = os.path.abspath(sys.argv[1]), sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 120
    screen = sys.argv[4] if len(sys.argv) > 4 else "timeline"
    os.environ.update(POPLAR_ENGINE_OPTIONS=EVERYTHING, TERM="xterm-256color", LC_ALL="C.UTF-8")
    trainer = [os.path.join(binaries, "ipu-train"), os.path.abspath(run), "--quiet", "--evaluate", "null", *sys.argv[5:]]
    writer = os.path.join(binaries, "make_database")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if run == "make_database":
            watched([writer, "big.db", "--spans", "100000M"], "events", seconds, screen)
            closing(writer)
        else:
            watched(trainer, "steps", seconds, screen)
        os.chdir("/")


if __name__ == "__main__":
    main()
