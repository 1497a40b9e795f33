/* sums.c - what ranks pay MPI for: the sum of an array over all of them, and a word from each to all.
 *
 * usage: mpirun -n RANKS scaling_sums
 *
 * Rank 0 prints a line for each case, "sum BYTES SECONDS" or "word BYTES SECONDS": the median of the turns. The calls are those
 * of the trainer (trainer/peers/mpi_slices.c), on the communicator of all. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TURNS = 31,
    CALLS = 10,
    WORD_BYTES = 248,
    PARTS_RANKS = 8,
    FLOATS_MAX = 1 << 18,
    RANKS_MAX = 4096
};

static int by_size(const void *a, const void *b)
{
    const double one = *(const double *)a;
    const double other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Few ranks: each receives its part of all arrays, adds the parts, and sends the sum to all. */
static void sum_by_parts(float *from, float *to, int count, int ranks, int rank)
{
    int counts[PARTS_RANKS] = { 0 };
    int starts[PARTS_RANKS] = { 0 };
    int own[PARTS_RANKS] = { 0 };
    int received[PARTS_RANKS] = { 0 };
    const int part = count / ranks;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int r = 0; r < ranks; r++) {
        starts[r] = r * part;
        counts[r] = r + 1 < ranks ? part : count - r * part;
    }
    for (int r = 0; r < ranks; r++) {
        own[r] = counts[rank];
        received[r] = r * counts[rank];
    }
    (void)MPI_Ialltoallv(from, counts, starts, MPI_FLOAT, to, own, received, MPI_FLOAT,
                         MPI_COMM_WORLD, &request);
    (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
    float *const sums = from + starts[rank];
    for (int i = 0; i < counts[rank]; i++) {
        float all = 0;
        for (int r = 0; r < ranks; r++)
            all += to[received[r] + i];
        sums[i] = all;
    }
    (void)MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, from, counts, starts, MPI_FLOAT,
                          MPI_COMM_WORLD, &request);
    (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void sum(float *from, float *to, int count)
{
    int ranks = 1;
    int rank = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    (void)MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (ranks <= PARTS_RANKS) {
        sum_by_parts(from, to, count, ranks, rank);
        return;
    }
    (void)MPI_Iallreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void word(const float *from, float *to)
{
    MPI_Request request = MPI_REQUEST_NULL;
    (void)MPI_Iallgather(from, WORD_BYTES, MPI_BYTE, to, WORD_BYTES, MPI_BYTE, MPI_COMM_WORLD,
                         &request);
    (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* count: floats of a sum; 0 = a word. Returns the median of a call, on the rank for which a turn took longest: one that comes
 * late finds its messages there. */
static double measure(int count, float *from, float *to)
{
    double seconds[TURNS];
    for (int turn = 0; turn < TURNS; turn++) {
        (void)MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int call = 0; call < CALLS; call++)
            if (count > 0)
                sum(from, to, count);
            else
                word(from, to);
        const double own = (MPI_Wtime() - begin) / CALLS;
        (void)MPI_Allreduce(&own, &seconds[turn], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    qsort(seconds, TURNS, sizeof(seconds[0]), by_size);
    return seconds[TURNS / 2];
}

static void measure_all(int rank, float *from, float *to)
{
    static const int counts[] = {
        0, 1 << 10, 1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18
    };
    (void)measure(FLOATS_MAX, from, to); /* touches all memory */
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const double seconds = measure(counts[i], from, to);
        const size_t bytes = counts[i] > 0 ? (size_t)counts[i] * sizeof(*from) : WORD_BYTES;
        if (rank == 0)
            printf("%s %zu %.9f\n", counts[i] > 0 ? "sum" : "word", bytes, seconds);
    }
}

int main(int count, char **arguments)
{
    int rank = 0;
    if (MPI_Init(&count, &arguments) != MPI_SUCCESS)
        return EXIT_FAILURE;
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *const from =
        calloc(FLOATS_MAX, sizeof(*from)); /* room for a word of each of RANKS_MAX */
    float *const to = calloc(FLOATS_MAX, sizeof(*to));
    if (from == NULL || to == NULL)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    else
        measure_all(rank, from, to);
    free(from);
    free(to);
    (void)MPI_Finalize();
    return EXIT_SUCCESS;
}

_Static_assert((size_t)RANKS_MAX *WORD_BYTES <= FLOATS_MAX * sizeof(float),
               "a word of each rank fits");
