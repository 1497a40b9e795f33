/* environment.h - reads environment variables, except in programs with elevated rights.
 *
 * In such a program (setuid, setgid, file capabilities: AT_SECURE) the caller controls the
 * environment, so
 * - Stoker's own variables are ignored: STOKER_CUDART names a file whose code then runs;
 * - no library is loaded or initialized that itself runs code which variables name. They read them
 *   with plain getenv():
 *     CUDA        CUDA_INJECTION64_PATH
 *     NVTX, in our own build and within cuBLASLt, cuDNN and NCCL    NVTX_INJECTION64_PATH
 *     NCCL        NCCL_NET_PLUGIN, NCCL_TUNER_PLUGIN, NCCL_PROFILER_PLUGIN, NCCL_ENV_PLUGIN
 *     nvImageCodec    NVIMGCODEC_EXTENSIONS_PATH
 *     Open MPI    OMPI_MCA_mca_base_component_path, HWLOC_PLUGINS_PATH
 *     libcurl     SSLKEYLOGFILE, a file that it writes to
 *     oneDNN      INTEL_LIBITTNOTIFY64, INTEL_JIT_PROFILER64, VS_PROFILER
 */
#ifndef STK_BASE_ENVIRONMENT_H
#define STK_BASE_ENVIRONMENT_H

#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>

/* Returns the variable's value; NULL if it is unset or empty, or if the program has elevated
 * rights. */
static inline const char *stk_environment(const char *name)
{
    const char *value = secure_getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

/* Returns NULL if libraries of the list above may be loaded and initialized, else the reason why
 * not. */
static inline const char *stk_environment_refuses_code(void)
{
    return getauxval(AT_SECURE) == 0
               ? NULL
               : "not loaded: it runs code that environment variables name, and this program has "
                 "elevated rights";
}

#endif
