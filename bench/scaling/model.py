"""model.py - samples/s of a run on many ranks, from the costs of its parts: the arithmetic alone.

    update of a rank = pass + loading + what is left to see of the sum of gradients + words

    pass       fixed + samples x each, times the ranks that share a CPU
    loading    samples x each, if the thread that trains loads as well; else 0
    sum        of all gradients over all ranks; MPI: mpi_sum, NCCL: nccl_sum
    words      each meeting sends a word of every rank to every other

Times are in seconds, sizes in bytes. Every formula names its source. model.py itself runs the tests of this file.
"""

MIB = 1 << 20
SLICE_BYTES = MIB  # trainer/peers/mpi_peers.h: STK_SLICE_FLOATS
BINOMIAL_BELOW_BYTES = 1 << 16  # Open MPI 4.1, ompi/mca/coll/libnbc/nbc_iallreduce.c: nbc_allreduce_init
PARTS_RANKS = 8  # trainer/peers/mpi.c: ranks that add parts of a slice themselves, at most
BACKWARD_SHARE = 2 / 3  # of a pass: two products for each of the forward part


def rounds(count):
    """Rounds in which one of `count` reaches all: the least r with 2^r >= count."""
    return (count - 1).bit_length()


def divide(ranks, node_ranks):
    """Ranks of a node, and number of nodes."""
    local = min(ranks, node_ranks)
    return local, -(-ranks // local)


def mpi_slice(ranks, node_ranks, size, node, net):
    """The sum of one slice.

    Up to PARTS_RANKS: each rank receives its part of R from all others, adds them, and sends the sum to all others: 2 (R - 1)
    messages, and (R - 1)/R of the slice moved twice and added once. More: Open MPI's MPI_Iallreduce. Few bytes: a binomial tree up and down, each level of which moves the slice twice and adds it once. Else
    recursive halving and doubling: each rank moves and adds (R - 1)/R of the slice (R. Thakur, R. Rabenseifner, W. Gropp:
    Optimization of Collective Communication Operations in MPICH, 2005, section 4.5). Neighbours come first, so of these bytes
    all but 1/P stay in a node of P ranks, and the rest of P ranks crosses the link of the node at the same time.

    node: round_s, byte_s (a byte moved up and down and added); net: round_s, byte_s (a byte moved once).
    """
    local, nodes = divide(ranks, node_ranks)
    if ranks <= PARTS_RANKS:
        near = 2 * (local - 1) * node["round_s"] + size * node["byte_s"] * (local - 1) / ranks
        away = ranks - local
        return near + 2 * away * net["round_s"] + 2 * size * net["byte_s"] * local * away / ranks
    if size < BINOMIAL_BELOW_BYTES:
        near = rounds(local) * (2 * node["round_s"] + size * node["byte_s"])
        return near + rounds(nodes) * 2 * (net["round_s"] + size * net["byte_s"])
    near = 2 * rounds(local) * node["round_s"] + size * node["byte_s"] * (1 - 1 / local)
    far = 2 * rounds(nodes) * net["round_s"] + 2 * size * net["byte_s"] * (1 - 1 / nodes)
    return near + far


def mpi_sum(ranks, node_ranks, size, node, net):
    """All gradients, slice after slice."""
    whole, rest = divmod(size, SLICE_BYTES)
    seconds = whole * mpi_slice(ranks, node_ranks, SLICE_BYTES, node, net)
    return seconds + (mpi_slice(ranks, node_ranks, rest, node, net) if rest > 0 else 0)


def words(ranks, node_ranks, node, net):
    """One meeting: each rank sends its word to each other, one after the other (libnbc's linear allgather)."""
    local, _ = divide(ranks, node_ranks)
    return (local - 1) * node["word_s"] + (ranks - local) * net["round_s"]


# NCCL's own model, src/graph/tuning.cc: base latency, and latency of a step in NVLink and in the network, microseconds;
# share of the bus bandwidth. Protocols LL and Simple.
NCCL_RING = (("LL", 3.6, 0.47, 2.7, 1 / 4), ("Simple", 8.4, 3.4, 9.6, 1.0))
NCCL_TREE = (("LL", 4.4, 0.52, 5.0, 0.9 / 3.8), ("Simple", 0.0, 28.0, 50.0, 0.9))
NCCL_LL_INTRA = 1.8  # steps within a node, if there are several
NCCL_PLATEAU = 1.9  # of a ring's latency, several nodes and much data


def nccl_sum(ranks, node_ranks, size, fabric):
    """Seconds of ncclAllReduce by the fastest of ring and tree, LL and Simple: NCCL's formulas for its own choice.

    fabric: bus bandwidth within a node and between nodes, bytes/s, as nccl-tests reports it.
    """
    local, nodes = divide(ranks, node_ranks)
    bus = fabric["node_bus"] if nodes == 1 else fabric["net_bus"]
    steps, far = 2 * (ranks - 1), 2 * (nodes - 1)
    times = []
    for name, base, intra, net, share in NCCL_RING:
        intra *= NCCL_LL_INTRA if nodes > 1 and name == "LL" else 1
        latency = base + (steps - far) * intra + far * net
        if nodes > 1 and name == "Simple" and size >= ranks / 16 * 65536:
            latency *= NCCL_PLATEAU
        times.append(latency * 1e-6 + size * steps / ranks / (bus * share))
    for name, base, intra, net, share in NCCL_TREE:
        intra *= NCCL_LL_INTRA if nodes > 1 and name == "LL" else 1
        latency = base + 2 * ((local - 1) * intra + rounds(nodes) * net)
        times.append(latency * 1e-6 + size * 2 / (bus * share))
    return min(times)


def seen(sum_s, last_slice_s, pass_s):
    """What is left to see of a sum that runs beside the backward pass: its last slice comes after the pass."""
    return max(last_slice_s, sum_s - BACKWARD_SHARE * pass_s)


def cpu_update(ranks, job, machine, net):
    """Seconds of an update by its parts, on ranks that compute on CPUs. MPI moves bytes in the thread that computes, so
    nothing of the sum is hidden."""
    local, _ = divide(ranks, machine["node_ranks"])
    crowd = max(1.0, local * job["threads"] / machine["cpus"])
    node = {name: value * crowd for name, value in machine["mpi"].items()}
    return {
        "compute": (job["fixed_s"] + job["samples"] * job["sample_s"]) * crowd,
        "load": job["samples"] * job["load_s"] * crowd,
        "sum": mpi_sum(ranks, machine["node_ranks"], job["gradient_bytes"], node, net) if ranks > 1 else 0.0,
        "words": job["meetings"] * words(ranks, machine["node_ranks"], node, net),
    }


def gpu_update(ranks, job, fabric, node, net):
    """The same on GPUs: NCCL sums beside the pass, and the hosts send the words by MPI."""
    pass_s = job["samples"] * job["sample_s"]
    parts = {"compute": pass_s, "load": 0.0, "sum": 0.0, "words": 0.0}
    if ranks > 1:
        whole = nccl_sum(ranks, fabric["node_ranks"], job["gradient_bytes"], fabric)
        last = nccl_sum(ranks, fabric["node_ranks"], min(SLICE_BYTES, job["gradient_bytes"]), fabric)
        parts["sum"] = seen(whole, last, pass_s)
        parts["words"] = job["meetings"] * words(ranks, fabric["node_ranks"], node, net)
    return parts


def rate(ranks, job, parts):
    """Samples/s of all ranks."""
    return ranks * job["samples"] / sum(parts.values())


def fit(points):
    """Least squares of (x, y) with weights 1/y: the error in percent counts. Returns (intercept, slope), neither below 0."""
    if len(points) == 1:
        return 0.0, points[0][1] / points[0][0]
    weights = [1 / (y * y) for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points)) / total
    above = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points))
    below = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points))
    slope = max(0.0, above / below)
    return max(0.0, mean_y - slope * mean_x), slope


# ---- tests ----------------------------------------------------------------------------------------------------------

def near(found, expected):
    assert abs(found - expected) <= 1e-9 * max(abs(expected), 1e-30), (found, expected)


def test_mpi():
    assert [rounds(n) for n in (1, 2, 3, 4, 5, 8, 9, 1024)] == [0, 1, 2, 2, 3, 3, 4, 10]
    assert divide(3, 64) == (3, 1) and divide(128, 64) == (64, 2) and divide(65, 64) == (64, 2)
    node, net = {"round_s": 1e-6, "byte_s": 1e-9, "word_s": 2e-6}, {"round_s": 5e-6, "byte_s": 1e-10}
    near(mpi_slice(2, 64, MIB, node, net), 2e-6 + MIB * 1e-9 / 2)
    near(mpi_slice(3, 64, MIB, node, net), 4e-6 + MIB * 1e-9 * 2 / 3)
    near(mpi_slice(8, 4, MIB, node, net), 6e-6 + MIB * 1e-9 * 3 / 8 + 8 * 5e-6 + 2 * MIB * 1e-10 * 4 * 4 / 8)
    near(mpi_slice(16, 64, 1024, node, net), 4 * (2e-6 + 1024e-9))  # four levels of a binomial tree
    near(mpi_slice(16, 64, MIB, node, net), 8e-6 + MIB * 1e-9 * 15 / 16)
    near(mpi_slice(16, 4, MIB, node, net), 4e-6 + MIB * 1e-9 * 3 / 4 + 4 * 5e-6 + 2 * MIB * 1e-10 * 3 / 4)
    near(mpi_sum(8, 8, 3 * MIB, node, net), 3 * mpi_slice(8, 8, MIB, node, net))
    near(mpi_sum(8, 8, MIB + 100, node, net),
         mpi_slice(8, 8, MIB, node, net) + mpi_slice(8, 8, 100, node, net))
    near(words(8, 4, node, net), 3 * 2e-6 + 4 * 5e-6)
    near(words(1, 4, node, net), 0)


def test_nccl():
    fabric = {"node_bus": 200e9, "net_bus": 100e9, "node_ranks": 8}
    # Much data: a ring's bandwidth, of which 2 (R - 1)/R times the data are moved.
    size = 1 << 34
    found = nccl_sum(8, 8, size, fabric)
    assert 1 < found / (size * 2 * 7 / 8 / 200e9) < 1.01
    # Little: LL, whose steps are short; on many nodes by a tree, whose rounds grow with the logarithm.
    near(nccl_sum(2, 8, 0, fabric), (3.6 + 2 * 0.47) * 1e-6)
    near(nccl_sum(1024, 8, 0, fabric), (4.4 + 2 * (7 * 0.52 * 1.8 + 7 * 5.0)) * 1e-6)
    # A bound of any all-reduce, and no more ranks make it cheaper.
    for size in (248, MIB, 100 * MIB):
        times = [nccl_sum(ranks, 8, size, fabric) for ranks in (2, 4, 8, 16, 64, 256, 1024)]
        assert times == sorted(times)
        assert times[-1] >= size * 2 / 100e9 * 0.9


def test_updates():
    near(seen(5.0, 1.0, 3.0), 3.0)
    near(seen(5.0, 1.0, 30.0), 1.0)
    job = {"samples": 100, "fixed_s": 0.01, "sample_s": 0.001, "load_s": 0.0001, "threads": 1, "meetings": 3,
           "gradient_bytes": 2 * MIB}
    machine = {"node_ranks": 64, "cpus": 2, "mpi": {"round_s": 1e-6, "byte_s": 1e-9, "word_s": 2e-6}}
    net = {"round_s": 5e-6, "byte_s": 1e-10}
    alone = cpu_update(1, job, machine, net)
    near(sum(alone.values()), 0.01 + 0.1 + 0.01)
    near(rate(1, job, alone), 100 / 0.12)
    two = cpu_update(2, job, machine, net)
    near(two["compute"], alone["compute"])
    near(two["sum"], 2 * (2e-6 + MIB * 1e-9 / 2))
    near(two["words"], 3 * 2e-6)
    four = cpu_update(4, job, machine, net)  # on two CPUs: everything takes twice as long
    near(four["compute"], 2 * alone["compute"])
    near(four["words"], 2 * 3 * 3 * 2e-6)
    gpu = {"samples": 256, "sample_s": 1e-4, "gradient_bytes": 100 * MIB, "meetings": 2}
    fabric = {"node_bus": 200e9, "net_bus": 100e9, "node_ranks": 8}
    host = (machine["mpi"], net)
    near(sum(gpu_update(1, gpu, fabric, *host).values()), 0.0256)
    for ranks in (2, 8, 64):  # all of the sum but its last slice is beside the pass
        near(gpu_update(ranks, gpu, fabric, *host)["sum"], nccl_sum(ranks, 8, MIB, fabric))
    near(gpu_update(16, gpu, fabric, *host)["words"], 2 * (7 * 2e-6 + 8 * 5e-6))
    quick = dict(gpu, sample_s=1e-6)
    assert gpu_update(64, quick, fabric, *host)["sum"] > 0.8 * nccl_sum(64, 8, 100 * MIB, fabric)


def test_fit():
    near(fit([(1, 3.0), (2, 5.0), (4, 9.0)])[0], 1.0)
    near(fit([(1, 3.0), (2, 5.0), (4, 9.0)])[1], 2.0)
    assert fit([(1, 5.0), (2, 4.0)])[1] == 0.0
    assert fit([(10, 5.0)]) == (0.0, 0.5)


if __name__ == "__main__":
    for test in (test_mpi, test_nccl, test_updates, test_fit):
        test()
    print("the model's arithmetic is right")
