"""Measuring in turns: every candidate once per round, so that all see the same machine; the median over the rounds."""
import os
import platform
import statistics
import time


def machine():
    """A line for the reader: what was measured where."""
    import stoker

    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return (f"# stoker {stoker.__version__}, Python {platform.python_version()}, {len(os.sched_getaffinity(0))} CPUs of "
            f"{names[0] if names else platform.machine()}, load {os.getloadavg()[0]:.2f}, {time.strftime('%Y-%m-%d')}")


def in_turns(candidates, rounds):
    """{name: [result of each round]}; candidates are {name: function without arguments}, all of which run once before."""
    for run in candidates.values():
        run()
    results = {name: [] for name in candidates}
    for turn in range(rounds):
        for name, run in candidates.items():
            results[name].append(run())
    return results


def middle(values):
    return statistics.median(values)


def spread(values):
    """Difference of the quartiles, as a share of the median."""
    if len(values) < 4:
        return (max(values) - min(values)) / middle(values)
    quarter = statistics.quantiles(values, n=4)
    return (quarter[2] - quarter[0]) / middle(values)


def ratio(results, name, to):
    """Median of the rounds' ratios: what slows a whole round down does not count."""
    return middle([a / b for a, b in zip(results[name], results[to])])


def libraries():
    """Those of torch, jax and numpy that this Python has."""
    import importlib.util

    return [name for name in ("numpy", "torch", "jax") if importlib.util.find_spec(name)]
