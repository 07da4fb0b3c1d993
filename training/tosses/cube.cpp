#include "tosses/cube.h"

#include <ATen/ATen.h>

#include "run/program.h"

namespace lcp::training {

using physics::RigidFormulation;
using torch::Tensor;

void CubeContact::add_to(CommandLine& line) {
  line.add("contact", name,
           "exact_cone (lcp::solve_friction), polyhedral (lcp::solve) or compliant (lcp::solve_contact)",
           one_of({"exact_cone", "polyhedral", "compliant"}));
  add_numbers_to(line);
}

void CubeContact::add_numbers_to(CommandLine& line) {
  line.add("substeps", substeps, "Steps between two samples", at_least_one);
  line.add("directions", directions, "Directions of polyhedral friction, >= 3",
           [](const std::int64_t& x) { return x >= 3 ? "" : ">= 3"; });
}

void CubeContact::exclude_unused(const CommandLine& line) const {
  const std::string contact = "--contact " + name;
  if (name != "polyhedral") line.exclude({"directions"}, contact);
  if (name == "compliant") {
    line.exclude({"restitution"}, contact);
  } else {
    line.exclude({"stiffness", "dissipation"}, contact);
  }
}

physics::RigidOptions CubeContact::options() const {
  physics::RigidOptions options;
  options.formulation = name == "exact_cone"   ? RigidFormulation::kExactCone
                        : name == "polyhedral" ? RigidFormulation::kPolyhedral
                                               : RigidFormulation::kCompliant;
  options.substeps = substeps;
  options.directions.count = directions;
  options.kappa = kappa;
  options.ties = ties;
  return options;
}

void CubeFlags::add_to(CommandLine& line) {
  line.add("mu", mu, "Friction coefficient", nonnegative);
  line.add("restitution", restitution, "Restitution, 0 to 1; not used by compliant contact", from_zero_to_one);
  line.add("side", side, "Side of the cube, m", positive);
  line.add("rounding", rounding, "Radius of its corners, m", nonnegative);
  line.add("center", center, "Centre of the cube from its centre of mass, x y z, m", finite_numbers(3));
  line.add("inertia", inertia, "Inertia over mass, m^2", positive);
  line.add("height", height, "Height of the ground at x = y = 0, m", finite_number);
  line.add("tilt-x", tilt_x, "Slope of the ground in x", finite_number);
  line.add("tilt-y", tilt_y, "Slope of the ground in y", finite_number);
  line.add("gravity", gravity, "Gravity, m/s^2", positive);
  line.add("drag", drag, "Deceleration by the air per velocity, 1/s", nonnegative);
  line.add("stiffness", stiffness, "Stiffness of compliant contact over mass, 1/s^2", positive);
  line.add("dissipation", dissipation, "Damping over stiffness of compliant contact, s", nonnegative);
}

Cube CubeFlags::cube() const {
  if (rounding > side / 2) {
    throw UsageError("the radius of the corners of a cube must be at most half of its side, " + short_number(side / 2) +
                     " m; got " + short_number(rounding));
  }
  const auto number = [](double x) { return torch::tensor(x, torch::kDouble); };
  const Tensor signs = torch::tensor({-1, 1}, torch::kDouble);
  return {number(mu),
          number(restitution),
          side / 2 * at::cartesian_prod({signs, signs, signs}),
          torch::tensor(center, torch::kDouble),
          number(rounding),
          number(inertia).expand(3),
          number(height),
          torch::tensor({tilt_x, tilt_y}, torch::kDouble),
          number(gravity),
          number(drag),
          number(stiffness),
          number(dissipation)};
}

identification::MotionScene scene_of(const Cube& cube, double dt) {
  const auto last = [](const Tensor& x) { return x.unsqueeze(-1); };
  const Tensor one = at::ones_like(cube.tilt.select(-1, 0)), none = at::zeros_like(cube.gravity);
  const Tensor slope = at::cat({-cube.tilt, last(one)}, -1), length = slope.norm(2, {-1});
  identification::MotionScene found;
  physics::RigidScene& scene = found.scene;
  scene.bodies = {{one, at::diag_embed(cube.inertia),
                   cube.center.unsqueeze(-2) + cube.corners - last(last(cube.rounding)) * cube.corners.sign(),
                   at::zeros_like(cube.corners.select(-1, 0)) + last(cube.rounding), cube.drag}};
  scene.planes = {{slope / last(length), cube.height / length}};
  scene.dt = dt;
  scene.gravity = at::stack({none, none, -cube.gravity}, -1);
  scene.mu = last(cube.mu);
  scene.restitution = last(cube.restitution);
  scene.stiffness = last(cube.stiffness);
  scene.dissipation = last(cube.dissipation);
  found.points = cube.center.unsqueeze(-2);
  return found;
}

physics::RigidSolution roll_out(const Cube& cube, const CubeContact& contact, double dt,
                                const physics::RigidState& start, std::int64_t steps) {
  const identification::MotionModel model(
      {}, [&](const Tensor&) { return scene_of(cube, dt); }, contact.options());
  return model.roll_out({}, start, steps);
}

}  // namespace lcp::training
