#include "systems/kernels.h"

#include "systems/planar_block.h"
#include "systems/point_mass.h"
#include "systems/tripod.h"
#include "systems/walk.h"

namespace lcp::systems::LCP_ISA {
extern const Kernels kTable;
const Kernels kTable = {{system_of<PlanarBlock<double, false>, PlanarBlock<float, false>>("planar_block_by_direction"),
                         system_of<PlanarBlock<double, true>, PlanarBlock<float, true>>("planar_block_by_fixed_point"),
                         system_of<PointMass<false>>("point_mass_at_positions"),
                         system_of<PointMass<true>>("point_mass_at_velocities"),
                         system_of<Tripod<double>, Tripod<float>>("tripod")}};

}  // namespace lcp::systems::LCP_ISA
