/* stoker/stoker.h - keep one accelerator fed with training batches: all headers except cuda.h.
 *
 * Six calls are enough:
 *
 *   stoker_dataset_open(&dataset, "mnist:data/mnist", NULL, &error);           dataset.h
 *   stoker_loader_create(&loader, dataset, &options, &error);                  loader.h, options.h
 *   while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {       loader.h, batch.h
 *       train(batch.images.data, batch.labels.data, batch.count);
 *       stoker_batch_release(&batch);
 *   }
 *   stoker_loader_destroy(&loader);
 *   stoker_dataset_close(&dataset);
 *
 * The other headers, by subject:
 *
 *   data         arrays.h files.h views.h mix.h    memory, lists of files, splits and joins, mixes
 *   samples      field.h tensor.h transform.h blend.h
 *   your code    hook.h codec.h rng.h              rows and batches, formats, random numbers
 *                storage.h reader.h                where names are, and reads in flight
 *   distributed  ranks.h cuda.h dlpack.h
 *   diagnostics  error.h stats.h trace.h version.h
 *
 * Errors    0 done, > 0 a normal stop, < 0 an enum stoker_err. Outputs are written only on 0. The
 *           library never prints, exits or touches signals.
 */
#ifndef STOKER_STOKER_H
#define STOKER_STOKER_H

#include <stoker/arrays.h>
#include <stoker/batch.h>
#include <stoker/blend.h>
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
#include <stoker/options.h>
#include <stoker/ranks.h>
#include <stoker/reader.h>
#include <stoker/remote.h>
#include <stoker/rng.h>
#include <stoker/stats.h>
#include <stoker/storage.h>
#include <stoker/tensor.h>
#include <stoker/trace.h>
#include <stoker/transform.h>
#include <stoker/version.h>
#include <stoker/views.h>

#endif
