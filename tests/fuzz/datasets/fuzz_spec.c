/* fuzz_spec.c - any text as the name of a data set.
 *
 * It is opened in a folder of our own, with a few files in it. A text that may lead out of it is
 * passed over: what lies elsewhere is not ours to open, nor to write an index over.
 */
#include "fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Two big-endian numbers. */
static const char npy[] =
    "\x93NUMPY\1\0\x3a\0{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}  "
    "\n\0\1\0\2";

static void make_files(void)
{
    stk_fuzz_mkdir("f");
    stk_fuzz_mkdir("f/c");
    stk_fuzz_write("f/c/a.raw", "12345678", 8);
    stk_fuzz_write("f/c/b.raw", "87654321", 8);
    stk_fuzz_write("f/c/c.png", "no image", 8);
    stk_fuzz_write("t.csv", "a,b,y\n1,2,0\n3,4,1\n5,6,0\n", 25);
    stk_fuzz_write("t.idx", "\0\0\x08\x01\0\0\0\x02yz", 10);
    stk_fuzz_mkdir("p");
    stk_fuzz_mkdir("q");
    stk_fuzz_write("p/1.npy", npy, sizeof(npy) - 1);
    stk_fuzz_write("q/1.txt", "text", 4);
    stk_fuzz_write("n.txt", "2 0 1", 5);
    stk_fuzz_write("w.txt", "1 0 .5", 6);
}

/* Open the spec there, and come back: the paths of inputs and findings are relative, too. */
static void open_there(const char *spec)
{
    const int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    STK_FUZZ_CHECK(here >= 0 && chdir(stk_fuzz_folder) == 0);
    stk_fuzz_open(spec, stk_fuzz_rows);
    STK_FUZZ_CHECK(fchdir(here) == 0);
    close(here);
}

/* ".." anywhere, or a slash that does not follow a letter or a digit. */
static bool leads_out(const char *spec)
{
    for (const char *slash = strchr(spec, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        const char before = slash == spec ? ' ' : slash[-1];
        if (!((before >= '0' && before <= '9') || (before >= 'A' && before <= 'Z') ||
              (before >= 'a' && before <= 'z')))
            return true;
    }
    return strstr(spec, "..") != NULL;
}

/* All labels of more than a million samples take long to read. */
static bool takes_long(const char *spec)
{
    const char *digits = strpbrk(spec, "0123456789");
    while (digits != NULL && strspn(digits, "0123456789") < 7)
        digits = strpbrk(digits + strspn(digits, "0123456789"), "0123456789");
    return digits != NULL &&
           (strstr(spec, "stratified") != NULL || strstr(spec, "weighted") != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (stk_fuzz_begins())
        make_files();
    char *spec = malloc(size + 1);
    STK_FUZZ_CHECK(spec != NULL);
    memcpy(spec, bytes, size);
    spec[size] = '\0';
    if (!leads_out(spec) && !takes_long(spec))
        open_there(spec);
    free(spec);
    return 0;
}
