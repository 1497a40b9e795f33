/* library.c - load libcudnn_graph, open a device, write descriptors, report errors. */
#include "trainer/backend/cuda/cudnn/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/library.h"
#include "loader/base/memory/memory.h"

enum { MESSAGE_BYTES = 256 };

static int failed_to_load(stoker_error *error, const char *why)
{
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &(struct stk_place)STK_NOWHERE,
                         "cuDNN: %s", why);
}

/* If the kernels of an engine do not compile here, another engine may do. */
static bool is_impossible(cudnnStatus_t status)
{
    return CUDNN_STATUS_CATEGORY((int)status) == CUDNN_STATUS_NOT_SUPPORTED ||
           status == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED;
}

int stk_cudnn_failed(const struct stk_cudnn *cudnn, cudnnStatus_t status, const char *what,
                     stoker_error *error)
{
    char message[MESSAGE_BYTES] = "";
    cudnn->call.cudnnGetLastErrorString(message, sizeof(message));
    const int code = is_impossible(status) ? STOKER_ENOTSUP : STOKER_EDEVICE;
    return stk_refuse_option(error, code, "cuDNN: %s: %s: %s", what,
                             cudnn->call.cudnnGetErrorString(status), message);
}

struct stk_cudnn_writer stk_cudnn_begin(const struct stk_cudnn *cudnn,
                                        cudnnBackendDescriptorType_t type)
{
    struct stk_cudnn_writer writer = { .cudnn = cudnn };
    writer.status = cudnn->call.cudnnBackendCreateDescriptor(type, &writer.descriptor);
    return writer;
}

void stk_cudnn_set(struct stk_cudnn_writer *writer, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (writer->status == CUDNN_STATUS_SUCCESS)
        writer->status = writer->cudnn->call.cudnnBackendSetAttribute(writer->descriptor, name,
                                                                      type, count, values);
}

void stk_cudnn_set_descriptor(struct stk_cudnn_writer *writer, cudnnBackendAttributeName_t name,
                              cudnnBackendDescriptor_t value)
{
    const void *const values = &value;
    stk_cudnn_set(writer, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, values);
}

cudnnStatus_t stk_cudnn_end(struct stk_cudnn_writer *writer, cudnnBackendDescriptor_t *out)
{
    if (writer->status == CUDNN_STATUS_SUCCESS)
        writer->status = writer->cudnn->call.cudnnBackendFinalize(writer->descriptor);
    if (writer->status == CUDNN_STATUS_SUCCESS)
        *out = writer->descriptor;
    else
        stk_cudnn_drop(writer->cudnn, &writer->descriptor);
    return writer->status;
}

void stk_cudnn_drop(const struct stk_cudnn *cudnn, cudnnBackendDescriptor_t *descriptor)
{
    if (*descriptor != NULL)
        (void)cudnn->call.cudnnBackendDestroyDescriptor(*descriptor);
    *descriptor = NULL;
}

static int load(struct stk_cudnn *cudnn, const char *library, stoker_error *error)
{
#define FUNCTION(name) STK_FUNCTION(struct stk_cudnn_calls, name)
    static const struct stk_function functions[] = { STK_CUDNN_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    const size_t count = sizeof(functions) / sizeof(functions[0]);
    const char *why = NULL;
    cudnn->library = library != NULL
                         ? stk_library_open(NULL, library, &why)
                         : stk_library_open("STOKER_CUDNN", "libcudnn_graph.so.9", &why);
    if (cudnn->library == NULL ||
        !stk_library_fill(cudnn->library, functions, count, &cudnn->call, &why))
        return failed_to_load(error, why);
    if (cudnn->call.cudnnGetVersion() / 10000 != CUDNN_MAJOR)
        return failed_to_load(error, "the library is of another major version than its header");
    return STOKER_OK;
}

static int describe_device(struct stk_cudnn *cudnn, const char *json, stoker_error *error)
{
    struct stk_cudnn_writer writer = stk_cudnn_begin(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    stk_cudnn_set(&writer, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                  (int64_t)strlen(json), json);
    const cudnnStatus_t status = stk_cudnn_end(&writer, &cudnn->device);
    if (status == CUDNN_STATUS_SUCCESS)
        return STOKER_OK;
    return stk_cudnn_failed(cudnn, status, "device description", error);
}

static int open_device(struct stk_cudnn *cudnn, stoker_error *error)
{
    const cudnnStatus_t status = cudnn->call.cudnnCreate(&cudnn->handle);
    if (status == CUDNN_STATUS_SUCCESS)
        return STOKER_OK;
    cudnn->handle = NULL;
    return stk_cudnn_failed(cudnn, status, "the current CUDA device", error);
}

int stk_cudnn_open(struct stk_cudnn **out, const struct stk_cudnn_options *options,
                   stoker_error *error)
{
    struct stk_cudnn *cudnn = stk_calloc(1, sizeof(*cudnn));
    if (cudnn == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN,
                             &(struct stk_place)STK_NOWHERE, "cuDNN");
    int rc = load(cudnn, options->library, error);
    if (rc == STOKER_OK)
        rc = options->device != NULL ? describe_device(cudnn, options->device, error)
                                     : open_device(cudnn, error);
    if (rc != STOKER_OK) {
        stk_cudnn_close(&cudnn);
        return rc;
    }
    *out = cudnn;
    return STOKER_OK;
}

void stk_cudnn_close(struct stk_cudnn **cudnn)
{
    struct stk_cudnn *const c = *cudnn;
    if (c == NULL)
        return;
    if (c->device != NULL)
        stk_cudnn_drop(c, &c->device);
    if (c->handle != NULL)
        (void)c->call.cudnnDestroy(c->handle);
    if (c->library != NULL)
        (void)dlclose(c->library);
    stk_free(c);
    *cudnn = NULL;
}

uint64_t stk_cudnn_version(const struct stk_cudnn *cudnn)
{
    return cudnn->call.cudnnGetVersion();
}
