// Options that take an enumerator or its name.
#pragma once

#include <string>
#include <utility>

namespace lcp {

/// A string that an enumerator converts to, by the function `name`.
template <class Enum, auto name>
struct NameOf : std::string {
  using std::string::string;
  NameOf(std::string text) : std::string(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  NameOf(Enum value) : std::string(name(value)) {}            // NOLINT(google-explicit-constructor)
};

}  // namespace lcp
