/* stoker/stoker.h - keeps one accelerator fed with training batches: includes all of the loader's headers but cuda.h.
 *
 *   dataset -> sampler -> reader -> decoder -> slot -> transfer -> consumer
 *   extents    order      io_uring  raw, ...   pinned  stream      (you)
 *
 * Lifetime  create, then { next, release } per batch, then destroy.
 * Threads   One consumer thread per loader; stoker_loader_stats() from any thread.
 * Errors    0 done, > 0 a normal stop, < 0 an enum stoker_err. Outputs are written only on 0. The library never
 *           prints, exits or touches signals.
 */
#ifndef STOKER_STOKER_H
#define STOKER_STOKER_H

#include <stoker/arrays.h>
#include <stoker/codec.h>
#include <stoker/dataset.h>
#include <stoker/dlpack.h>
#include <stoker/error.h>
#include <stoker/export.h>
#include <stoker/field.h>
#include <stoker/files.h>
#include <stoker/hook.h>
#include <stoker/loader.h>
#include <stoker/mix.h>
#include <stoker/mixing.h>
#include <stoker/ranks.h>
#include <stoker/reader.h>
#include <stoker/rng.h>
#include <stoker/stats.h>
#include <stoker/tensor.h>
#include <stoker/trace.h>
#include <stoker/transform.h>
#include <stoker/version.h>
#include <stoker/views.h>

#endif
