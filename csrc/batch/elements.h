// The elements of a batch in memory, one after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "batch/kernels.h"

namespace lcp::batch {

/// The view that begins at element b; size: the numbers of an element.
template <class T>
BatchView<T> from(const BatchView<T>& view, std::int64_t b, std::int64_t size) {
  return {view.data + (view.shared ? 0 : b * size), view.shared};
}

/// The first element from b on with the status kLeftOver, or count.
inline std::int64_t next_left(const std::int8_t* status, std::int64_t b, std::int64_t count) {
  const void* const found =
      b < count ? std::memchr(status + b, static_cast<unsigned char>(kLeftOver), count - b) : nullptr;
  return found == nullptr ? count : static_cast<const std::int8_t*>(found) - status;
}

/// Reads elements as doubles: in place where T is double, else from a copy, which a shared element makes once.
template <class T>
class ElementReader {
 public:
  explicit ElementReader(std::int64_t size) : size_(size), copy_(sizeof(T) == sizeof(double) ? 0 : size) {}

  const double* operator()(const BatchView<T>& view, std::int64_t b) {
    const T* const source = from(view, b, size_).data;
    if constexpr (sizeof(T) == sizeof(double)) {
      return source;
    } else {
      if (!view.shared || source != copied_) std::copy_n(source, size_, copy_.begin());
      copied_ = view.shared ? source : nullptr;
      return copy_.data();
    }
  }

 private:
  std::int64_t size_;
  std::vector<double> copy_;
  const T* copied_ = nullptr;  // the shared element that copy_ holds
};

}  // namespace lcp::batch
