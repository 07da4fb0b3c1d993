#include "ops/compliant/operators.h"

#include <c10/util/Exception.h>

namespace lcp::ops {

compliant::Form form_named(std::string_view name) {
  if (name == "particle") return compliant::Form::kParticle;
  TORCH_CHECK(name == "block", "body must be particle or block; got ", name);
  return compliant::Form::kBlock;
}

void check_compliant(const Call& call) {
  const at::ScalarType dtype = call.first().scalar_type();
  TORCH_CHECK(dtype == at::kDouble, "parameters must be float64; got ", dtype);
  const auto name = std::get<std::string_view>(call.value("body"));
  const compliant::Form form = form_named(name);
  const auto check_size = [&](const char* what, char letter, int expected) {
    TORCH_CHECK(call.size(letter) == expected, "a ", name, " has ", expected, " ", what, "; got ", call.size(letter));
  };
  check_size("parameters", 'p', compliant::parameters_of(form));
  check_size("contacts", 'c', compliant::contacts_of(form));
}

}  // namespace lcp::ops
