/* stoker/stoker.hpp - data sets, loaders and batches as C++20 objects that release what they own.
 *
 *   stoker::loader loader(stoker::dataset("mnist:data/mnist"), options);
 *   for (stoker::batch &batch : loader.epoch())
 *       train(batch.values<std::uint8_t>("image"), batch.values<std::int64_t>("label"));
 *
 * Objects move and are not copied. A failed call throws stoker::error. get() returns the C object
 * for all other calls. Lifetimes, threads and order are those of stoker/loader.h.
 */
#ifndef STOKER_STOKER_HPP
#define STOKER_STOKER_HPP

#include <bit>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <stoker/stoker.h>
#include <string>
#include <type_traits>
#include <utility>

namespace stoker {

/* The cause of a failure; what() is its message. */
struct error : std::runtime_error {
    explicit error(const stoker_error &first) : std::runtime_error(first.message), cause(first) {}
    stoker_error cause;
};

struct closer {
    void operator()(stoker_dataset *dataset) const noexcept { stoker_dataset_close(&dataset); }
    void operator()(stoker_loader *loader) const noexcept { stoker_loader_destroy(&loader); }
};

class dataset {
  public:
    explicit dataset(const std::string &spec, const stoker_dataset_options *options = nullptr)
    {
        stoker_dataset *opened = nullptr;
        stoker_error cause;
        if (stoker_dataset_open(&opened, spec.c_str(), options, &cause) < 0)
            throw error(cause);
        owned_.reset(opened);
    }
    /* Take ownership, for example of a view (stoker/views.h) or of a data set of your own. */
    explicit dataset(stoker_dataset *owned) noexcept : owned_(owned) {}
    stoker_dataset *get() const noexcept { return owned_.get(); }
    const stoker_dataset_info &info() const noexcept { return *stoker_dataset_get_info(get()); }

  private:
    std::unique_ptr<stoker_dataset, closer> owned_;
};

/* A borrowed batch, or none. */
class batch {
  public:
    batch() noexcept : lent_(STOKER_BATCH_INIT) {}
    batch(batch &&other) noexcept : lent_(std::exchange(other.lent_, STOKER_BATCH_INIT)) {}
    batch &operator=(batch &&other) noexcept { return std::swap(lent_, other.lent_), *this; }
    ~batch() { release(); }
    void release() noexcept { stoker_batch_release(&lent_); }
    stoker_batch *get() noexcept { return &lent_; }
    const stoker_batch *operator->() const noexcept { return &lent_; }
    std::span<const std::uint64_t> ids() const noexcept { return { lent_.ids, lent_.count }; }

    /* All elements of a field, last axis fastest; on a GPU in its memory. std::invalid_argument: no
     * such field, or its elements are not of type T. */
    template <class T> std::span<T> values(const char *name) const
    {
        const stoker_field *field = stoker_batch_field(&lent_, name);
        if (field == nullptr || field->values.dtype != dtype_of<T>())
            throw std::invalid_argument(std::string(name) + ": no field of this name and type");
        std::size_t elements = 1;
        for (std::uint32_t axis = 0; axis < field->values.rank; axis++)
            elements *= field->values.shape[axis];
        return { static_cast<T *>(field->values.data), elements };
    }

  private:
    template <class T> static constexpr stoker_dtype dtype_of() noexcept
    {
        constexpr stoker_dtype integers[2][4] = {
            { STOKER_DTYPE_UINT8, STOKER_DTYPE_UINT16, STOKER_DTYPE_UINT32, STOKER_DTYPE_UINT64 },
            { STOKER_DTYPE_INT8, STOKER_DTYPE_INT16, STOKER_DTYPE_INT32, STOKER_DTYPE_INT64 }
        };
        if (std::is_same_v<T, bool>)
            return STOKER_DTYPE_BOOL;
        if (std::is_floating_point_v<T>)
            return sizeof(T) == 4 ? STOKER_DTYPE_FLOAT32 : STOKER_DTYPE_FLOAT64;
        return integers[std::is_signed_v<T>][std::countr_zero(sizeof(T))];
    }
    stoker_batch lent_;
};

/* The batches of an epoch that are still to come, for one range-for; each turn releases the batch
 * of the turn before, unless you moved it away. */
class rest_of_epoch {
  public:
    explicit rest_of_epoch(stoker_loader *loader) noexcept : loader_(loader) {}
    struct iterator {
        rest_of_epoch *range;
        batch &operator*() const noexcept { return range->batch_; }
        void operator++() { range->advance(); }
        bool operator==(std::default_sentinel_t) const noexcept { return range->rc_ != STOKER_OK; }
    };
    iterator begin() { return advance(), iterator{ this }; }
    std::default_sentinel_t end() const noexcept { return {}; }

  private:
    void advance()
    {
        batch_.release();
        rc_ = stoker_loader_next(loader_, batch_.get(), -1);
        if (rc_ < 0)
            throw error(*stoker_loader_error(loader_));
        if (rc_ == STOKER_BUSY) /* the epoch would look complete */
            throw std::logic_error("stoker: more batches kept than on_lent allows");
    }
    stoker_loader *loader_;
    batch batch_;
    int rc_ = STOKER_OK;
};

class loader {
  public:
    explicit loader(const dataset &from,
                    const stoker_loader_options &options = STOKER_LOADER_OPTIONS_INIT)
    {
        stoker_loader *created = nullptr;
        stoker_error cause;
        if (stoker_loader_create(&created, from.get(), &options, &cause) < 0)
            throw error(cause);
        owned_.reset(created);
    }
    stoker_loader *get() const noexcept { return owned_.get(); }
    /* None follow the last epoch. stoker_loader_interrupt() ends the range, too. */
    rest_of_epoch epoch() noexcept { return rest_of_epoch(get()); }

  private:
    std::unique_ptr<stoker_loader, closer> owned_;
};

} // namespace stoker
#endif
