/* mnist.c - "mnist:DIR": the four files of MNIST, or of a data set with the same names.
 *
 *   DIR/{train,t10k}-images{-,.}idx3-ubyte[.gz]
 *   DIR/{train,t10k}-labels{-,.}idx1-ubyte[.gz]
 *
 * A plain file is preferred to its .gz.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/formats.h"
#include "datasets/idx/idx.h"
#include "datasets/parameters.h"
#include "datasets/source.h"

struct part {
    const char *half; /* "train" or "t10k" */
    const char *what; /* "images" or "labels" */
    const char *kind; /* "idx3" or "idx1" */
};

/* Write the path of the first spelling that exists. Returns 0, or the errno of looking
 * for the last one; path then holds the spelling for the message. */
static int find(char path[PATH_MAX], const char *directory, const struct part *part)
{
    static const char *const suffixes[] = { "", ".gz" };
    static const char *const separators[] = { "-", "." };
    struct stat status;
    for (int i = 0; i < 4; i++) {
        int length = snprintf(path, PATH_MAX, "%s/%s-%s%s%s-ubyte%s", directory, part->half,
                              part->what, separators[i % 2], part->kind, suffixes[i / 2]);
        if (length < 0 || length >= PATH_MAX)
            return ENAMETOOLONG;
        if (stat(path, &status) == 0)
            return 0;
    }
    int os_errno = errno;
    (void)snprintf(path, PATH_MAX, "%s/%s-%s-%s-ubyte", directory, part->half, part->what,
                   part->kind);
    return os_errno;
}

static int find_or_fail(char path[PATH_MAX], const char *directory, const struct part *part,
                        stoker_error *error)
{
    int os_errno = find(path, directory, part);
    if (os_errno == 0)
        return STOKER_OK;
    struct stk_place place = stk_at(path, STOKER_NO_OFFSET);
    place.os_errno = os_errno == ENOENT ? 0 : os_errno; /* which the message says itself */
    const int rc = stk_error_set(error, stk_error_from_errno(os_errno), STOKER_STAGE_OPEN, &place,
                                 "mnist: not found, with or without .gz; datasets/fetch-mnist.sh "
                                 "(installed in share/stoker) downloads it");
    if (error != NULL)
        error->os_errno = os_errno;
    return rc;
}

/* The prefix of a split's file names, or NULL. */
static const char *half_of_split(const char *split)
{
    if (split == NULL || strcmp(split, "train") == 0)
        return "train";
    return strcmp(split, "test") == 0 ? "t10k" : NULL;
}

static int open_mnist(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                      stoker_error *error)
{
    if (rest[0] == '\0')
        return stk_refuse_spec(error, STOKER_ESPEC, "\"mnist:\" names no directory");
    int rc = stk_spec_no_parameters(rest, "mnist", error);
    if (rc != STOKER_OK)
        return rc;
    const char *half = half_of_split(options->split);
    if (half == NULL)
        return stk_refuse_spec(error, STOKER_EINVAL,
                               "split \"%s\": mnist has \"train\" and \"test\"", options->split);
    char images_path[PATH_MAX];
    char labels_path[PATH_MAX];
    const struct part images = { half, "images", "idx3" };
    const struct part labels = { half, "labels", "idx1" };
    rc = find_or_fail(images_path, rest, &images, error);
    if (rc == STOKER_OK)
        rc = find_or_fail(labels_path, rest, &labels, error);
    if (rc == STOKER_OK)
        rc = stk_idx_open(out, &stk_mnist_ops, images_path, labels_path, options, error);
    return rc;
}

/* A directory with the images of either half. */
static bool recognise_mnist(const char *path)
{
    char found[PATH_MAX];
    return find(found, path, &(struct part){ "train", "images", "idx3" }) == 0 ||
           find(found, path, &(struct part){ "t10k", "images", "idx3" }) == 0;
}

const struct stk_format stk_format_mnist = { .name = "mnist",
                                             .open = open_mnist,
                                             .recognise = recognise_mnist };
