#include "simd/instruction_set.h"
#include "systems/kernels.h"

namespace lcp::systems {

LCP_CHOOSE_TABLE(Kernels, kernels)

const System* find_system(std::string_view name) {
  for (const System& system : kernels().systems) {
    if (system.name == name) return &system;
  }
  return nullptr;
}

}  // namespace lcp::systems
