#include "ops/registration.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace lcp::ops {
namespace {

// The file of this copy of the library.
std::string library_path() {
  Dl_info found = {};
  if (dladdr(reinterpret_cast<const void*>(&library_path), &found) == 0) return {};
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(found.dli_fname, error);
  return error ? found.dli_fname : path.string();
}

// The path as it was when the library was loaded, since a relative one depends on the folder.
std::string loaded_path() {
  static const std::string path = library_path();
  return path;
}

// Whether another copy has registered the operators already; first called before this copy registers any.
bool is_second_copy() {
  static const bool is_second = [] {
    const std::string own = loaded_path();
    const auto other = c10::Dispatcher::singleton().findOp({"lcp::_library_path", ""});
    if (!other) return false;
    TORCH_WARN("a second copy of TorchLCP is loaded, from ", own, "; its operators are those of the first, from ",
               other->typed<std::string()>().call());
    return true;
  }();
  return is_second;
}

LCP_LIBRARY_FRAGMENT(library) {
  library.def("_library_path() -> str", TORCH_FN(loaded_path), {at::Tag::pt2_compliant_tag});
}

}  // namespace

Registration::Registration(torch::Library::Kind kind, std::optional<c10::DispatchKey> key, void (*add)(torch::Library&),
                           const char* file, std::uint32_t line) {
  if (is_second_copy()) return;
  library_.emplace(kind, "lcp", key, file, line);
  add(*library_);
}

}  // namespace lcp::ops
