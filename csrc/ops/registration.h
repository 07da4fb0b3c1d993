// Registration of operators, in place of PyTorch's macros TORCH_LIBRARY... If a process loads a second copy of this
// library, this copy registers nothing, and its functions call the operators of the first. PyTorch's macros would end
// the process, since an error of a static initializer can be caught nowhere.
#pragma once

#include <torch/library.h>

#include <cstdint>
#include <optional>

namespace lcp::ops {

/// Calls `add` with a torch::Library of the namespace lcp, but not in a second copy of this library.
class Registration {
 public:
  Registration(torch::Library::Kind kind, std::optional<c10::DispatchKey> key, void (*add)(torch::Library&),
               const char* file, std::uint32_t line);

 private:
  std::optional<torch::Library> library_;
};

}  // namespace lcp::ops

#define LCP_REGISTER_NAMED(kind, key, library, add, registration)                                         \
  static void add(torch::Library&);                                                                       \
  static const ::lcp::ops::Registration registration(torch::Library::kind, key, add, __FILE__, __LINE__); \
  static void add(torch::Library& library)  // NOLINT(bugprone-macro-parentheses): a name
#define LCP_REGISTER(kind, key, library, id) \
  LCP_REGISTER_NAMED(kind, key, library, C10_CONCATENATE(add_to_library_, id), C10_CONCATENATE(registration_, id))

/// LCP_LIBRARY(library) { library.def(...); } replaces TORCH_LIBRARY(lcp, library), and the others replace its
/// relatives.
#define LCP_LIBRARY(library) LCP_REGISTER(DEF, std::nullopt, library, C10_UID)
#define LCP_LIBRARY_FRAGMENT(library) LCP_REGISTER(FRAGMENT, std::nullopt, library, C10_UID)
#define LCP_LIBRARY_IMPL(key, library) LCP_REGISTER(IMPL, c10::DispatchKey::key, library, C10_UID)
