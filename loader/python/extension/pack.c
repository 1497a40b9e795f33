/* pack.c - Dataset.pack(): rows of one length, packed from the samples of a data set. */
#include "core.h"
#include <string.h>

static const char *const fields[] = { "tokens",    "inputs",     "targets",   "positions",
                                      "documents", "cu_seqlens", "max_seqlen" };

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

_Static_assert(STOKER_PACKED_MAX_SEQLEN == 1 << (FIELD_COUNT - 1), "a word per bit");

static int read_fields(PyObject *value, uint32_t *out)
{
    PyObject *list = PySequence_List(value);
    int rc = list != NULL ? 0 : -1;
    *out = 0;
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_Size(list); i++) {
        const int bit = core_word(PyList_GetItem(list, i), "fields", fields, FIELD_COUNT);
        if (bit < 0)
            rc = -1;
        else
            *out |= 1U << bit;
    }
    Py_XDECREF(list);
    return rc;
}

static int read_long(PyObject *value, stoker_long_documents *out)
{
    static const char *const words[] = { "refuse", "split", "crop" };
    const int word = core_word(value, "long", words, 3);
    *out = (stoker_long_documents)word;
    return word < 0 ? -1 : 0;
}

static int read_token(PyObject *value, const char *name, int64_t *out)
{
    PyObject *number = PyNumber_Index(value);
    int overflow = 0;
    if (number == NULL)
        return -1;
    *out = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow == 0 && !PyErr_Occurred())
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: %R is out of its range", name, value);
    return -1;
}

/* The keywords of pack(); NULL or None = the default. */
struct given {
    PyObject *length, *block, *long_documents, *fields, *dtype, *padding, *ignored, *field;
};

static bool has(PyObject *value)
{
    return value != NULL && value != Py_None;
}

static int read_packing(const struct given *given, stoker_packing *packing, PyObject *keep)
{
    if (core_u64(given->length, "length", &packing->length) < 0 ||
        (has(given->block) && core_u64(given->block, "block", &packing->block) < 0) ||
        (has(given->long_documents) &&
         read_long(given->long_documents, &packing->long_documents) < 0) ||
        (has(given->fields) && read_fields(given->fields, &packing->fields) < 0) ||
        (has(given->dtype) && core_dtype(given->dtype, "dtype", &packing->dtype) < 0) ||
        (has(given->padding) && read_token(given->padding, "padding", &packing->padding) < 0) ||
        (has(given->ignored) && read_token(given->ignored, "ignored", &packing->ignored) < 0))
        return -1;
    if (has(given->field))
        packing->field = core_text(given->field, "field", keep);
    return has(given->field) && packing->field == NULL ? -1 : 0;
}

PyObject *core_pack(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "length",  "block",   "long",  "fields", "dtype",
                             "padding", "ignored", "field", NULL };
    const core_dataset *documents = (const core_dataset *)self;
    core_state *state = core_state_of(Py_TYPE(self));
    struct given given = { .length = NULL };
    stoker_packing packing = STOKER_PACKING_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOOOOOO:pack", names, &given.length,
                                     &given.block, &given.long_documents, &given.fields,
                                     &given.dtype, &given.padding, &given.ignored, &given.field))
        return NULL;
    PyObject *keep = PyList_New(0);
    stoker_dataset *handle = NULL;
    stoker_error error;
    int rc = keep != NULL ? read_packing(&given, &packing, keep) : -1;
    if (rc < 0) {
        Py_XDECREF(keep);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS rc = stoker_dataset_pack(&handle, documents->handle, &packing, &error);
    Py_END_ALLOW_THREADS Py_DECREF(keep);
    return rc == 0 ? core_wrap_dataset(state, handle, documents->calls_python)
                   : core_raise(state, &error);
}
