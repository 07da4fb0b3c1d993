// Loops over the elements of a batch, in threads, that turn strided tensors into the contiguous numbers of the solvers.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "batch/elements.h"
#include "batch/kernels.h"
#include "ops/broadcast.h"
#include "ops/parallel.h"

namespace lcp::ops {

using at::Tensor;

// The approximate number of additions and multiplications that the solution of an element takes.
inline std::int64_t operations(std::int64_t n) { return n * n * n + 50; }

// The least number of elements for which a separate task is worth starting.
inline std::int64_t grain(std::int64_t n) { return std::max<std::int64_t>(1, 100'000 / operations(n)); }

// The least number of elements of a task where there are batch kernels.
inline std::int64_t kernel_grain(std::int64_t n) { return n <= batch::kLockstep ? 50'000 / (n * n + 1) : grain(n); }

// Elements that are read in place are solved in pieces of about this many operations, some milliseconds, between which
// an interrupt is noticed.
constexpr std::int64_t kOperationsPerPiece = 4'000'000;

// Reads consecutive matrices or vectors of a tensor as a BatchView. They are read in place where they lie one behind
// another in memory or are all the same one, else from a copy.
template <class T>
class BatchReader {
 public:
  /// spread: whether a matrix or vector that all elements share is copied for each of them.
  BatchReader(const BroadcastBatch& batch, int number, const Tensor& x, std::int64_t core_dims, bool spread)
      : data_(x.const_data_ptr<T>()),
        batch_(batch),
        number_(number),
        rows_(core_dims == 2 ? x.size(-2) : 1),
        columns_(x.size(-1)),
        row_stride_(core_dims == 2 ? x.stride(-2) : 0),
        column_stride_(x.stride(-1)) {
    const bool contiguous = (column_stride_ == 1 || columns_ <= 1) && (rows_ <= 1 || row_stride_ == columns_);
    dense_ = contiguous && batch.dense(number, rows_ * columns_);
    shared_ = !dense_ && !spread && batch.shared(number);
    if (shared_ && !contiguous) data_ = copy(0, 1);
  }

  bool in_place() const { return dense_ || shared_; }

  batch::BatchView<T> operator()(std::int64_t begin, std::int64_t count) {
    if (in_place()) return {data_ + (shared_ ? 0 : begin * rows_ * columns_), shared_};
    return {copy(begin, count), false};
  }

 private:
  const T* copy(std::int64_t begin, std::int64_t count) {
    copy_.resize(count * rows_ * columns_);
    T* target = copy_.data();
    BroadcastBatch::Cursor cursor(batch_, begin);
    for (std::int64_t b = 0; b < count; ++b, cursor.next()) {
      const T* source = data_ + cursor.offset(number_);
      for (std::int64_t i = 0; i < rows_; ++i) {
        for (std::int64_t j = 0; j < columns_; ++j) *target++ = source[i * row_stride_ + j * column_stride_];
      }
    }
    return copy_.data();
  }

  const T* data_;
  const BroadcastBatch& batch_;
  int number_;
  std::int64_t rows_, columns_, row_stride_, column_stride_;
  bool dense_ = false;
  bool shared_ = false;
  std::vector<T> copy_;
};

struct Input {
  const Tensor& tensor;
  std::int64_t core_dims;  // 2: matrix, 1: vector
  bool spread = false;     // see BatchReader's constructor
};

constexpr std::size_t kInputs = 11;  // the most inputs that an operator has

/// The inputs of an operator for successive elements of the batch.
template <class T>
struct Views {
  std::array<batch::BatchView<T>, kInputs> input;
  const std::int8_t* states;  ///< the complementary basis, element after element; nullptr where there is none

  const batch::BatchView<T>& operator[](std::size_t k) const { return input[k]; }
};

// Calls work(views, begin, count) for pieces of the batch; `make_work` makes one `work` for each task of at least
// `least` elements. states: [..., n] int8, or nullptr.
template <class T, class MakeWork>
void for_each_run(at::IntArrayRef batch_sizes, std::initializer_list<Input> inputs, const Tensor* states,
                  std::int64_t n, std::int64_t least, const MakeWork& make_work) {
  BroadcastBatch batch(batch_sizes);
  for (const Input& input : inputs) batch.add(input.tensor, input.core_dims);
  if (states != nullptr) batch.add(*states, 1);
  parallel_for(0, batch.count(), least, [&](std::int64_t begin, std::int64_t end) {
    auto work = make_work();
    c10::SmallVector<BatchReader<T>, kInputs> read;
    bool in_place = true;
    for (const Input& input : inputs) {
      read.emplace_back(batch, static_cast<int>(read.size()), input.tensor, input.core_dims, input.spread);
      in_place = in_place && read.back().in_place();
    }
    std::optional<BatchReader<std::int8_t>> read_states;
    if (states != nullptr) {
      read_states.emplace(batch, static_cast<int>(read.size()), *states, 1, true);
      in_place = in_place && read_states->in_place();
    }
    const std::int64_t piece = in_place ? std::max<std::int64_t>(512, kOperationsPerPiece / operations(n))
                                        : std::clamp<std::int64_t>(16'384 / (n * n + 1), 1, 512);
    interrupt::Pace pace;
    Views<T> views = {};
    for (std::int64_t b = begin; b < end; b += piece) {
      const std::int64_t count = std::min(piece, end - b);
      for (std::size_t k = 0; k < read.size(); ++k) views.input[k] = read[k](b, count);
      if (read_states) views.states = (*read_states)(b, count).data;
      pace.spend(count * operations(n));
      work(views, b, count);
    }
  });
}

// Calls work(x, b) for each element b of the batch, where x has its inputs as readers. `make_work` makes one `work` for
// each task.
template <class T, class MakeWork>
void for_each_element(at::IntArrayRef batch_sizes, std::initializer_list<Input> inputs, std::int64_t n,
                      const MakeWork& make_work) {
  for_each_run<T>(batch_sizes, inputs, nullptr, n, grain(n), [&] {
    c10::SmallVector<batch::ElementReader<T>, kInputs> readers;
    for (const Input& input : inputs) {
      const Tensor& x = input.tensor;
      readers.emplace_back(input.core_dims == 2 ? x.size(-2) * x.size(-1) : x.size(-1));
    }
    return [work = make_work(), readers = std::move(readers), pace = interrupt::Pace(), cost = operations(n)](
               const auto& views, std::int64_t begin, std::int64_t count) mutable {
      std::array<const double*, kInputs> x{};
      for (std::int64_t b = 0; b < count; ++b) {
        for (std::size_t k = 0; k < readers.size(); ++k) x[k] = readers[k](views[k], b);
        pace.spend(cost);
        work(x.data(), begin + b);
      }
    };
  });
}

// The memory into which the solvers write an element's doubles, which are then stored as T.
template <class T>
class Writer {
 public:
  explicit Writer(const Tensor& output) : data_(output.mutable_data_ptr<T>()), element_(output.size(-1)) {}
  double* data() { return element_.data(); }
  void fill(double value) { std::fill(element_.begin(), element_.end(), value); }
  void store(std::int64_t b) const {
    std::copy(element_.begin(), element_.end(), data_ + b * static_cast<std::int64_t>(element_.size()));
  }

 private:
  T* data_;
  std::vector<double> element_;
};

inline at::IntArrayRef batch_of(const Tensor& x) { return x.sizes().slice(0, x.dim() - 1); }

}  // namespace lcp::ops
