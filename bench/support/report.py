# SPDX-License-Identifier: BSL-1.0
"""Runs turnstile_bench and prints its results as one table."""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

COLUMNS = {
    "ours": "turnstile",
    "local": "turnstile::local",
    "channel": "channel",
    "concurrent_channel": "concurrent_channel",
    "timer": "timer idiom",
    "cancel_after": "asio::cancel_after",
    "co_spawn": "co_spawn",
    "by_hand": "std::mutex by hand",
    "std_mutex": "std::mutex",
}

# Workload, what it is called in the table, and the floor that belongs to it.
ROWS = [
    ("lock", "W1 mutex, uncontended", "nested_call"),
    ("mutex", "W2 mutex, 100 coroutines", "post"),
    ("mutex_2_threads", "W3 the same on 2 threads", None),
    ("acquire", "W4 semaphore, uncontended", "nested_call"),
    ("semaphore", "W4 semaphore, 10 of 100", "post"),
    ("semaphore_2_threads", "W4 the same on 2 threads", None),
    ("broadcast_1000", "W5 event wakes 1,000, each", None),
    ("broadcast_100000", "W5 event wakes 100,000, each", None),
    ("barrier", "W7 barrier of 100, each arrival", None),
    ("barrier_2_threads", "W7 the same on 2 threads", None),
    ("latch", "latch, each of 100 arrivals", None),
    ("counter_1", "counter, a change reaches the only waiter", None),
    ("counter_1000", "counter, a change reaches one of 1,000", None),
    ("counter_100000", "counter, a change reaches one of 100,000", None),
    ("fanout_100", "broadcast to 100 receivers, each", None),
    ("watch_100", "watch, 100 readers, each", None),
    ("oneshot", "oneshot, made, awaited and dropped", None),
    ("spsc", "W6 queue of 64, 1 to 1", "nested_call"),
    ("spsc_batch", "W6 the same, popped by up to 64", None),
    ("mpmc", "W6 queue of 64, 4 to 4", "nested_call"),
    ("spsc_2_threads", "W6 1 to 1 on 2 threads", None),
    ("spsc_batch_2_threads", "W6 the same, popped by up to 64", None),
    ("mpmc_2_threads", "W6 4 to 4 on 2 threads", None),
    ("cancel_1", "W8 cancel the only waiter", None),
    ("cancel_1000", "W8 cancel one of 1,000", None),
    ("cancel_100000", "W8 cancel one of 100,000", None),
    ("read", "W9 shared_mutex, uncontended read", "nested_call"),
    ("read_mostly", "shared_mutex, 90 of 100 read", "post"),
    ("turns", "condition, two take turns", None),
    ("breaker", "breaker, a closed circuit", None),
    ("breaker_count", "breaker, the last 100 calls", None),
    ("breaker_time", "breaker, a window of time", None),
    ("breaker_keys", "keyed breaker, the last 100 calls of each key", None),
    ("breaker_call", "async_call through a breaker", "direct_call"),
    ("bulkhead_call", "async_call through a bulkhead", "direct_call"),
    ("bulkhead", "bulkhead, uncontended", "nested_call"),
    ("bulkhead_contended", "bulkhead, 10 of 100", "post"),
    ("rate_try", "rate limiter, try", None),
    ("rate_try_no_clock", "the same, time stands still", None),
    ("rate_try_2_threads", "the same on 2 threads", None),
    ("rate_try_4", "rate limiter, 4 bandwidths, try", None),
    ("rate_acquire", "rate limiter, acquire at once", "nested_call"),
    ("rate_key", "rate limiter, 1,000,000 keys, try", None),
    ("rate_come_and_go", "a key comes and is forgotten", None),
    ("rate_purge", "an idle key is purged", None),
    ("bytes_key", "a key, of 1,000,000 (bytes)", None),
    ("timeout", "a time limit on what completes at once", "timeout"),
    ("retry", "a retry that is not needed", "retry"),
    ("timeout_coroutine", "a time limit on a coroutine", "timeout_coroutine"),
    ("retry_coroutine", "a retry of a coroutine, not needed", "timeout_coroutine"),
    ("pipeline_4", "a coroutine in a pipeline of 4 stages", "timeout_coroutine"),
    ("pipeline_6", "the same, and 2 time limits", "timeout_coroutine"),
    ("bytes_mutex", "a mutex (bytes)", None),
    ("bytes_event", "an event (bytes)", None),
    ("bytes_coroutine", "a waiting coroutine (bytes)", "bytes_coroutine"),
    ("bytes_callback", "a waiting callback (bytes)", None),
    ("bytes_item", "a queued 8-byte item (bytes)", None),
    ("bytes_pop_coroutine", "a coroutine waiting to pop (bytes)", None),
    ("bytes_pop_callback", "a callback waiting to pop (bytes)", None),
]

# The work layer has other competitors, and a table of its own.
WORK_COLUMNS = {
    "ours": "turnstile",
    "local": "turnstile::local",
    "operators": "|| and &&",
    "parallel_group": "parallel_group",
    "channel": "channel",
    "concurrent_channel": "concurrent_channel",
    "by_hand": "by hand",
    "on_strand": "by hand, on a strand",
}

WORK_ROWS = [
    ("bind", "an operation bound to a source", "bind"),
    ("cancel_bound", "a source cancels 100,000 operations, each", None),
    ("select_ready", "select of two, one is ready", None),
    ("select_wait", "select of two, both wait", None),
    ("all", "all of two operations", None),
    ("child", "a child of a group", None),
    ("child_yields", "the same, with a yield", "post"),
    ("limited_children", "1,000,000 children, 100 at a time", "post"),
    ("job", "a job of a worker pool", None),
    ("job_yields", "the same, with a yield", "post"),
    ("job_2_threads", "a job of a worker pool, 2 threads", None),
    ("job_yields_2_threads", "the same, with a yield, 2 threads", None),
    ("guarded", "guarded, uncontended", "nested_call"),
    ("guarded_read", "shared_guarded, uncontended read", "nested_call"),
    ("keyed_lock", "keyed_mutex, one key after the other", "nested_call"),
    ("pool", "resource_pool, uncontended", "nested_call"),
    ("pool_checked", "the same, with a bypass window", "nested_call"),
    ("pool_contended", "resource_pool, 10 of 100", "post"),
    ("pool_contended_2_threads", "the same on 2 threads", None),
    ("cache_hit", "cache, a hit", "nested_call"),
    ("cache_hit_2_threads", "the same on 2 threads", None),
    ("bytes_cache_entry", "an entry of a cache (bytes)", None),
]

FLOORS = {
    "nested_call": "nested awaitable call",
    "post": "co_await post",
    "std_mutex": "std::mutex lock and unlock",
    "direct_call": "the same call without it",
}


# ------------------------------------------------------------------------- results ----


class Results:
    """Medians of what the program measured, by workload and competitor."""

    def __init__(self, report):
        samples = {}
        for run in report["benchmarks"]:
            if run.get("run_type") == "aggregate":
                continue
            workload, competitor = run["name"].split("/")[:2]
            if run.get("error_occurred"):
                raise SystemExit(
                    f"{workload}/{competitor} failed: {run['error_message']}")
            for unit in ("ns", "bytes", "allocs"):
                if unit in run:
                    samples.setdefault((workload, competitor, unit), []).append(run[unit])
        self._medians = {key: statistics.median(s) for key, s in samples.items()}

    def value(self, workload, competitor):
        """Nanoseconds, or bytes; None if that was not measured."""
        return self._medians.get(
            (workload, competitor, "ns"),
            self._medians.get((workload, competitor, "bytes")))

    def allocs(self, workload, competitor):
        return self._medians.get((workload, competitor, "allocs"))

    def floor(self, name):
        if name in FLOORS:
            return self.value("floor", name)
        return self.value(name, "floor") if name else None


def find_program(folder):
    for program in (folder / "bench/turnstile_bench", folder / "turnstile_bench"):
        if program.is_file():
            return program
    raise SystemExit(f"there is no turnstile_bench in {folder}; build it first: ./dev bench")


def listed(program, only):
    """The names of the benchmarks, in two groups: those that run on one thread, and those that run
    on several. The standard library is faster in a process that never had a second thread, so the
    groups run in processes of their own."""
    command = [program, "--benchmark_list_tests", f"--benchmark_filter={only}"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return ([n for n in names if "_threads/" not in n], [n for n in names if "_threads/" in n])


def run(program, names, repetitions):
    """All single results of one process."""
    anything = "^(" + "|".join(re.escape(name) for name in names) + ")$"
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "bench.json"
        command = [
            program, f"--benchmark_filter={anything}", f"--benchmark_out={out}",
            "--benchmark_out_format=json", f"--benchmark_repetitions={repetitions}",
            "--benchmark_enable_random_interleaving=true",
        ]
        done = subprocess.run(command, check=False, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0 or not out.exists():
            raise SystemExit(f"{program} failed:\n{done.stderr}")
        return json.loads(out.read_text())


def measure(folder, processes, repetitions, only):
    """Where a process has its stack and its heap can make a loop half as fast again, for as long
    as it lives: so there are several."""
    program = find_program(folder)
    groups = [names for names in listed(program, only) if names]
    if not groups:
        raise SystemExit(f"there is no benchmark that matches '{only}'")
    start = time.monotonic()
    report = None
    for i in range(processes):
        for names in groups:
            part = run(program, names, repetitions)
            if report:
                report["benchmarks"] += part["benchmarks"]
            else:
                report = part
        passed = time.monotonic() - start
        print(f"... round {i + 1} of {processes}, {passed:.0f} s", file=sys.stderr)
    return report


# --------------------------------------------------------------------------- table ----


def number(value):
    if value is None:
        return "-"
    if value >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def cell(results, workload, competitor):
    value = results.value(workload, competitor)
    ours = results.value(workload, "ours")
    if value is None:
        return "-"
    if competitor == "ours" or not ours:
        return number(value)
    ratio = value / ours
    return f"{number(value)} x{ratio:,.0f}" if ratio >= 100 else f"{number(value)} x{ratio:.1f}"


def allocations(results, workload, *competitors):
    """Those of the first competitor that was measured."""
    counts = (results.allocs(workload, c) for c in competitors)
    count = next((count for count in counts if count is not None), None)
    if count is None:
        return "-"
    return f"{count:.2f}" if count >= 0.005 else "0"


def table(results, columns, rows):
    yield ["ns for each operation", *columns.values(), "floor", "allocs", "channel's"]
    for workload, label, floor in rows:
        if results.value(workload, "ours") is None:
            continue
        yield [label, *(cell(results, workload, c) for c in columns),
               number(results.floor(floor)), allocations(results, workload, "ours"),
               allocations(results, workload, "channel", "concurrent_channel")]


def print_text(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        head, *rest = (text.ljust(w) if i == 0 else text.rjust(w)
                       for i, (text, w) in enumerate(zip(row, widths)))
        print(head, *rest, sep="  ")


def print_markdown(rows):
    head, *body = rows
    print("|", " | ".join(head), "|")
    print("|---|" + "---:|" * (len(head) - 1))
    for row in body:
        print("|", " | ".join(row), "|")


def print_notes(results):
    floors = [f"{label} {number(results.floor(name))} ns"
              for name, label in FLOORS.items() if results.floor(name) is not None]
    print("Medians of interleaved runs of several processes. x2.0: takes twice as long as turnstile, or as much memory.")
    if floors:
        print("Floors: " + ", ".join(floors) + ".")
    print("allocs: heap allocations for each operation with turnstile, Asio's included, once warm; "
          "then those with a channel, or a concurrent_channel.")


# --------------------------------------------------------------------------- check ----


LEVEL = 1 / 1.3  # not slower, as far as one run can tell: see README.md

AIMS = [  # workload, competitor, how many times as long as ours it must take
    ("timeout", "timer", 2.0),
    ("breaker", "by_hand", 1.0),
    ("bulkhead", "channel", 4.0),
    ("bulkhead_contended", "channel", 1.0),
    *((workload, competitor, factor) for workload in ("lock", "acquire", "read")
      for competitor, factor in (("channel", 6.0), ("timer", LEVEL))),
    ("read_mostly", "channel", 1.0),
    ("mutex", "channel", 1.0),
    ("mutex_2_threads", "concurrent_channel", 1.0),
    ("semaphore", "channel", 1.0),
    ("semaphore_2_threads", "concurrent_channel", 1.0),
    ("broadcast_1000", "channel", 2.5),
    ("broadcast_100000", "channel", 2.5),
    ("fanout_100", "channel", 1.5),
    ("watch_100", "channel", 1.5),
    ("watch_100", "timer", 1.0),
    ("spsc", "channel", 4.0),
    ("mpmc", "channel", 4.0),
    ("spsc_2_threads", "concurrent_channel", 4.0),
    ("mpmc_2_threads", "concurrent_channel", 4.0),
    ("rate_try_no_clock", "std_mutex", 1.5),
    *((workload, "timer", 1.0)
      for workload in ("mutex", "semaphore", "broadcast_1000", "broadcast_100000")),
    ("select_ready", "operators", 4.0),
    ("select_wait", "operators", 3.0),
    ("all", "operators", 1.0),
    ("child_yields", "on_strand", 0.77),
    ("pool", "by_hand", 4.0),
    ("barrier", "timer", 1.5),
    ("barrier_2_threads", "timer", 1.5),
    ("counter_1000", "timer", 10.0),
    ("counter_100000", "timer", 1000.0),
    *((workload, competitor, 1.0)
      for workload in ("job", "job_yields", "job_2_threads", "job_yields_2_threads")
      for competitor in ("by_hand", "concurrent_channel")),
    *((f"cancel_{n}", competitor, 1.0)
      for n in (1, 1000, 100_000) for competitor in ("channel", "timer")),
]


# Where memory is asked for: ten coroutines, or ninety, yield at the same time, and Asio keeps the
# memory of two such posts; a oneshot is made anew each time; a new key needs memory; and co_spawn
# makes several frames.
ALLOCATES = ("semaphore", "semaphore_2_threads", "bulkhead_contended", "read_mostly", "oneshot",
             "rate_come_and_go", "child", "child_yields", "limited_children",
             "keyed_lock", "job", "job_yields", "job_2_threads", "job_yields_2_threads",
             "pool_contended", "pool_contended_2_threads")


def misses(results):
    labels = {workload: label for workload, label, _ in ROWS + WORK_ROWS}
    columns = {**COLUMNS, **WORK_COLUMNS}
    for workload, competitor, factor in AIMS:
        ours, theirs = results.value(workload, "ours"), results.value(workload, competitor)
        if ours is not None and theirs is not None and theirs < ours * factor:
            yield (f"{labels[workload]}: {columns[competitor]} takes {theirs / ours:.2f} times "
                   f"as long, at least {factor:.4g} is wanted")
    for ours in ("ours", "local"):
        one, many = (results.value(f"cancel_{n}", ours) for n in (1, 100_000))
        if one and many and many > 1.5 * one:
            yield (f"W8 cancel, {COLUMNS[ours]}: among 100,000 it takes {many / one:.2f} times "
                   "as long as alone, at most 1.5 is wanted")
        one, many = (results.value(f"counter_{n}", ours) for n in (1, 100_000))
        if one and many and many > 2 * one:
            yield (f"counter, {COLUMNS[ours]}: with 100,000 waiting a change takes "
                   f"{many / one:.2f} times as long as with one, at most 2 is wanted")
        for workload, label, _ in ROWS + WORK_ROWS:
            count = results.allocs(workload, ours)
            if workload in ALLOCATES or count is None:
                continue
            if count >= 0.05:  # two threads now and then miss each other's cached memory
                yield (f"{label}, {COLUMNS[ours]}: {count:.2f} heap allocations for each "
                       "operation, none is wanted")


def main():
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="build folder")
    parser.add_argument("--quick", action="store_true", help="fewer processes")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--check", action="store_true",
                        help="fail if an aim of the project is missed")
    parser.add_argument("--only", default=".", metavar="REGEX", help="only these benchmarks")
    parser.add_argument("--processes", type=int, help="how often the program is run")
    parser.add_argument("--repetitions", type=int, help="runs of each benchmark in a process")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="where all single results are kept: <build>/bench.json")
    options = parser.parse_args()

    report = measure(options.build, options.processes or (5 if options.quick else 11),
                     options.repetitions or 3, options.only)
    kept = options.json or options.build / "bench.json"
    kept.write_text(json.dumps(report, indent=1))
    results = Results(report)
    for columns, rows in ((COLUMNS, ROWS), (WORK_COLUMNS, WORK_ROWS)):
        lines = list(table(results, columns, rows))
        if len(lines) > 1:
            (print_markdown if options.markdown else print_text)(lines)
            print()
    print_notes(results)

    print(f"All single results: {kept}", file=sys.stderr)

    missed = list(misses(results)) if options.check else []
    for message in missed:
        print("MISSED " + message, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
