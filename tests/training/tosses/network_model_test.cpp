#include "tosses/network_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tosses/protocols.h"
#include "tosses/simulated.h"

namespace lcp::training::network_model_test {

using torch::Tensor;

TEST(NetworkModelTest, BeginsWithUniformMotion) {
  const std::vector<Toss> tosses = simulate_tosses(CubeFlags().cube(), {.substeps = 1}, {.count = 2}, 0);
  const NetworkModel model(tosses, {.hidden_units = 8}, 148, 9.81, 0);
  const Segments all = whole_tosses(tosses);
  const physics::RigidSolution found = model.roll_out(all.start, 3);
  EXPECT_TRUE(at::equal(found.next.velocity[2], all.start.velocity));
  EXPECT_TRUE(at::equal(found.next.angular_velocity[2], all.start.angular_velocity));
  EXPECT_TRUE(at::allclose(found.next.position[2], all.start.position + 3 * all.start.velocity / 148));
  EXPECT_TRUE((found.next.orientation.norm(2, {-1}) - 1).abs().max().item<double>() < 1e-14);
}

}  // namespace lcp::training::network_model_test
