#include "ops/systems/operators.h"

#include <c10/util/Exception.h>

#include "systems/kernels.h"

namespace lcp::ops {

void check_system(const Call& call) {
  const auto name = std::get<std::string_view>(call.value("system"));
  const systems::System* const system = systems::find_system(name);
  TORCH_CHECK(system != nullptr, "there is no system ", name);
  const auto check_size = [&](const char* what, char letter, int expected) {
    TORCH_CHECK(call.size(letter) == expected, "a ", name, " has ", expected, " ", what, "; got ", call.size(letter));
  };
  check_size("parameters", 'p', system->parameters);
  check_size("states", 'k', system->states);
  check_size("inputs", 'm', system->inputs);
  TORCH_CHECK(system->fits(call.size('n').guard_int(__FILE__, __LINE__)), "a ", name, " does not have ", call.size('n'),
              " pairs");
}

}  // namespace lcp::ops
