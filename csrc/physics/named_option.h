// Options of operators that name an enumerator.
#pragma once

#include <c10/util/Exception.h>

#include <array>
#include <cstddef>
#include <string>

namespace lcp::physics {

/// The enumerator called `name`, where `names` are those of all enumerators in the order of the enum. Throws
/// c10::Error, with the name of the option in the message, where there is none.
template <class Enum, std::size_t n>
Enum enumerator_named(const char* option, const std::array<const char*, n>& names, const std::string& name) {
  std::string all;
  for (std::size_t k = 0; k < n; ++k) {
    if (name == names[k]) return static_cast<Enum>(k);
    all += std::string(k == 0 ? "" : k + 1 < n ? ", " : " or ") + names[k];
  }
  TORCH_CHECK(false, option, " must be ", all, "; got ", name);
}

}  // namespace lcp::physics
