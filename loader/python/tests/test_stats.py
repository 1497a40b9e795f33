"""stats() and trace()."""

import json

import pytest

import stoker


def test_stats_count_and_judge(loader):
    counted = loader()
    list(counted)
    stats = counted.stats()
    assert (stats.batches, stats.samples, stats.bytes) == (10, 100, 800)
    assert isinstance(stats.verdict, str) and stats.verdict and stats.device == "cpu"
    assert stats.as_dict()["samples"] == 100 and "100 samples" in repr(stats)
    with pytest.raises(AttributeError, match="sample_count"):
        stats.sample_count


def test_the_difference_of_two_is_what_happened_between(loader):
    counted = loader()
    list(counted)
    before = counted.stats()
    list(counted)
    assert (counted.stats() - before).batches == 10 and counted.stats().batches == 20


def test_a_trace_is_json_of_complete_events(loader, tmp_path):
    traced = loader(trace_events=1 << 12)
    for _ in range(2):
        list(traced)
    traced.trace(tmp_path / "t.json")
    lent = [event for event in json.loads((tmp_path / "t.json").read_text()) if event.get("name") == "lend"]
    assert len(lent) >= 20
    with pytest.raises(stoker.OptionError, match="trace_events"):
        loader().trace(tmp_path / "u.json")
    assert not (tmp_path / "u.json").exists()
