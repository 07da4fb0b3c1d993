// The elements of a batch in memory.
#pragma once

namespace lcp::linalg {

/// The matrices or vectors of a batch in memory: one behind another, or a single one that all elements share.
template <class T>
struct BatchView {
  const T* data;
  bool shared;
};

}  // namespace lcp::linalg
