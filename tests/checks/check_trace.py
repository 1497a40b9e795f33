#!/usr/bin/env python3
"""check_trace.py - a trace file is what chrome://tracing and Perfetto load, and can be true.

usage: check_trace.py FILE RUNS BATCHES

FILE holds RUNS processes, in each of which BATCHES batches were lent. Each thread's slices lie
apart or one within the other; each batch is claimed, published, lent and released once and in
this order; and the counter of ready batches says what the publishes and lends say.
"""
import collections
import json
import sys
from decimal import Decimal

PHASES = {"M", "X", "C", "b", "e"}
ONCE = ("publish", "lend", "release")


def check_fields(event):
    assert event["ph"] in PHASES, event
    assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
    assert isinstance(event["name"], str) and event["name"], event
    if event["ph"] != "M":
        assert isinstance(event["ts"], Decimal) and event["ts"] >= 0, event
    if event["ph"] == "X":
        assert isinstance(event["dur"], Decimal) and event["dur"] >= 0, event


def check_names(events):
    """Every process and every thread with a slice has a name, and no two threads share one id."""
    names = collections.Counter((e["pid"], e["tid"], e["name"]) for e in events if e["ph"] == "M")
    assert all(count == 1 for count in names.values()), names
    for event in events:
        assert names[(event["pid"], event["pid"], "process_name")] == 1, event
        if event["ph"] == "X":
            assert names[(event["pid"], event["tid"], "thread_name")] == 1, event
    owners = {(e["pid"], e["tid"]) for e in events}
    assert len({tid for _, tid in owners}) == len(owners), "two processes share a thread's id"


def check_nesting(events):
    threads = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            threads[event["tid"]].append((event["ts"], -event["dur"], event["name"]))
    for tid, slices in threads.items():
        ends = []
        for begin, minus_dur, name in sorted(slices):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or begin - minus_dur <= ends[-1], f"{tid}: {name} at {begin} sticks out"
            ends.append(begin - minus_dur)


def check_batches(events, wanted):
    """events: the slices of one process."""
    spans = collections.Counter()
    rows = collections.Counter()
    lives = collections.defaultdict(dict)
    for event in events:
        batch = event.get("args", {}).get("batch")
        if batch is None:
            continue
        if event["name"] == "claim":
            spans[(batch, event["args"]["row"], event["args"]["rows"])] += 1
            rows[batch] += event["args"]["rows"]
        if event["name"] in ONCE:
            assert event["name"] not in lives[batch], f"batch {batch}: {event['name']} again"
            lives[batch][event["name"]] = event
    assert all(count == 1 for (_, _, size), count in spans.items() if size > 0), "claimed twice"
    lent = [batch for batch, life in lives.items() if "lend" in life]
    assert sorted(lent) == list(range(wanted)), f"{len(lent)} batches lent, not {wanted}"
    for batch in lent:
        life = lives[batch]
        assert life["publish"]["ts"] <= life["lend"]["ts"], life
        assert life["lend"]["ts"] + life["lend"]["dur"] <= life["release"]["ts"], life
        assert rows[batch] == life["lend"]["args"]["rows"], life


def check_states(events):
    """events: all of one process. ready and lent begin and end; the counter follows."""
    open_states = set()
    ready = 0
    for event in events:
        if event["ph"] in "be":
            key = (event["cat"], event["name"], event["id2"]["local"])
            assert (event["ph"] == "e") == (key in open_states), event
            open_states ^= {key}
            if event["name"] == "ready":
                ready += 1 if event["ph"] == "b" else -1
        elif event["ph"] == "C":
            assert event["args"] == {"ready": ready} and ready >= 0, (event, ready)
    assert not any(name == "lent" for _, name, _ in open_states), open_states


def main():
    path, runs, batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(path, encoding="utf-8") as file:
        events = json.load(file, parse_float=Decimal)
    assert isinstance(events, list)
    for event in events:
        check_fields(event)
    check_names(events)
    check_nesting(events)
    pids = sorted({event["pid"] for event in events})
    assert len(pids) == runs, f"{len(pids)} processes, not {runs}"
    assert min(e["ts"] for e in events if e["ph"] == "X") == 0
    for pid in pids:
        mine = [event for event in events if event["pid"] == pid]
        assert not any(event["name"] == "process_labels" for event in mine), "events were dropped"
        check_batches([event for event in mine if event["ph"] == "X"], batches)
        check_states(mine)
    print(f"{path}: {len(events)} events, {len(pids)} processes")


if __name__ == "__main__":
    main()
