// The systems compliant_particle and compliant_block, two bodies with three velocities each.
#include <torch/types.h>

#include <array>

#include "lcp/certify_contact.h"
#include "lcp/physics/compliant_block.h"
#include "lcp/physics/compliant_particle.h"
#include "lcp/solve.h"
#include "simulation/system.h"

namespace lcp::training {
namespace {

using namespace lcp::physics;
using torch::Tensor;

constexpr double kSharp = 1e-8;  // sigma of nearly rigid ground

// The properties in which the bodies differ.
struct ParticleKind {
  using Body = CompliantParticle;
  static constexpr const char* kName = "compliant_particle";
  using Names = std::vector<std::string>;
  inline static const Names kPosition = {"x", "y", "z"}, kVelocity = {"v_x", "v_y", "v_z"},
                            kForce = {"u_x", "u_y", "u_z"}, kOptional = {"x", "y", "v_y", "u_x", "u_y", "u_z"},
                            kImpulses = {"gamma_x", "gamma_y", "gamma_n"};
  static constexpr std::int64_t kUp = 2, kContacts = 1;
  static constexpr const char* kExact = "the step in closed form";

  static Tensor shown(const Tensor& gamma) { return gamma; }
  void add_to(CommandLine&) {}
  double rest() const { return 0; }
  Body body(const PhysicsFlags& p, double dt, const CompliantGround& ground) const {
    return Body::of(p.mass, dt, p.gravity, ground);
  }
  static CompliantStep exact(const CompliantState& state, const Tensor& u, const Body& body) {
    return exact_step(state, u, body);
  }
  static CompliantStep rigid(const CompliantState& state, const Tensor& u, const Body& body) {
    return rigid_step(state, u, body);
  }
};

struct BlockKind {
  using Body = CompliantBlock;
  static constexpr const char* kName = "compliant_block";
  using Names = std::vector<std::string>;
  inline static const Names kPosition = {"x", "z", "theta"}, kVelocity = {"v_x", "v_z", "omega"},
                            kForce = {"u_x", "u_z", "torque"},
                            kOptional = {"x", "theta", "omega", "u_x", "u_z", "torque"},
                            kImpulses = {"gamma_t1", "gamma_n1", "gamma_t2", "gamma_n2",
                                         "gamma_t3", "gamma_n3", "gamma_t4", "gamma_n4"};
  static constexpr std::int64_t kUp = 1, kContacts = 4;
  static constexpr const char* kExact = "lcp::solve of the dual";

  static Tensor shown(const Tensor& gamma) { return torch::stack({gamma.select(-1, 0), gamma.select(-1, 2)}, -1); }
  void add_to(CommandLine& line) {
    line.add("size", size, "Width and height of the block, m", each(positive, "two numbers > 0", 2, 2));
  }
  double rest() const { return size[1] / 2; }
  Body body(const PhysicsFlags& p, double dt, const CompliantGround& ground) const {
    return Body::of(p.mass, size[0], size[1], dt, p.gravity, ground);
  }
  static CompliantStep exact(const CompliantState& state, const Tensor& u, const Body& body) {
    const Problem dual = dual_problem(state, u, body);
    return read_dual(state, u, lcp::solve(dual.M, dual.q).z, body);
  }
  static CompliantStep rigid(const CompliantState& state, const Tensor& u, const Body& body) {
    const Problem rigid = rigid_problem(state, u, body);
    return read_rigid(state, u, lcp::solve(rigid.M, rigid.q).z, body);
  }

  std::vector<double> size = {0.4, 0.2};
};

template <class Kind>
class CompliantSystem : public System {
 public:
  CompliantSystem()
      : System({.formulations = {"convex"},
                .default_steps = 100,
                .example = std::string("--system ") + Kind::kName + " --speed 0 --push 6 --stiffness 1e3",
                .inputs = {"z", "v_x", "v_z"},
                .optional_inputs = Kind::kOptional,
                .rollout_flags = {"height", "speed", "push"},
                .physics = {.dt = 0.01, .mu = 0.5}}) {}

  void add_to(CommandLine& line) override {
    line.add("stiffness", stiffness_, "Stiffness of each contact, N/m", positive);
    line.add("dissipation", dissipation_, "Damping of each contact over its stiffness, s", nonnegative);
    line.add("sigma", regularization_.sigma,
             "Regularisation of friction: velocity of a sticking contact over its impulse times the Delassus diagonal",
             positive);
    line.add("beta", regularization_.beta,
             "Shortest period of a contact's oscillation, in time steps; stiffer contacts are softened; 0: no limit",
             nonnegative);
    line.add("height", height_, "Height above the ground before the first step, m", finite_number);
    line.add("speed", speed_, "Velocity before the first step, along x, m/s", finite_number);
    line.add("push", push_, "Force along x in all steps, N", finite_number);
    kind_.add_to(line);
  }

  Motion run(const Request& request) const override {
    const auto body =
        kind_.body(physics, physics.dt, CompliantGround::of(physics.mu, stiffness_, dissipation_, regularization_));
    const CompliantState first = start(request);
    const Tensor u = forces(request);
    const CompliantSolution solution = simulate(first, u, body);
    const CompliantState& end = solution.step.next;
    const Tensor gamma = solution.step.gamma.unflatten(-1, at::IntArrayRef({Kind::kContacts, 3}));
    const Tensor friction = gamma.narrow(-1, 0, 2).norm(2, {-1}), pressure = gamma.select(-1, 2);
    const Tensor touches = (pressure > 0).any(-1);
    const Tensor slides = (pressure > 0) & (friction >= physics.mu * pressure * (1 - 1e-9));

    Motion motion;
    motion.data = motion_table(u.size(0), request.count())
                      .add(Kind::kPosition, request.with_position_noise(end.position))
                      .add(Kind::kVelocity, request.with_velocity_noise(end.velocity))
                      .add(Kind::kImpulses, Kind::shown(gamma).flatten(-2))
                      .take();
    const CompliantProblem problem =
        contact_problem({starts(first.position, end.position), starts(first.velocity, end.velocity)}, u, body);
    motion.residual =
        certify_contact(problem.A, problem.v_free, problem.J, problem.v_hat, problem.R, problem.mu, end.velocity)
            .residual;
    motion.status = solution.status;
    motion.error =
        largest_difference(end.velocity, velocities(first, u, [&](const CompliantState& now, const Tensor& force) {
                             return Kind::exact(now, force, body).next;
                           }));
    motion.sticking = touches & ~slides.any(-1);
    motion.certificate = certify_rollout(first, u, body, solution);
    motion.exact = Kind::kExact;
    const auto largest_where = [](const Tensor& mask, const Tensor& x) {
      return torch::where(mask, x, torch::zeros_like(x)).nan_to_num().max().item<double>();
    };
    motion.metrics["contact_fraction"] = touches.to(torch::kDouble).mean().item<double>();
    motion.metrics["max_creep"] = largest_where(motion.sticking, end.velocity.select(-1, 0).abs());
    motion.metrics["max_hover"] = largest_where(slides, gaps(end, body));
    motion.metrics["mean_iterations"] = solution.iterations.to(torch::kDouble).mean().item<double>();
    if (!request.inputs) motion.tables.emplace_back("convergence.csv", convergence(request));
    return motion;
  }

 private:
  static Tensor starts(const Tensor& first, const Tensor& next) { return with_start(first, next).slice(0, 0, -1); }

  CompliantState start(const Request& request) const {
    if (request.inputs) return {request.vector_input(Kind::kPosition), request.vector_input(Kind::kVelocity)};
    const Tensor zero = torch::zeros({request.count()}, request.dtype);
    std::array<Tensor, 3> position = {zero, zero, zero}, velocity = {speed_ * request.variation(1), zero, zero};
    position[Kind::kUp] = kind_.rest() + height_ * request.variation(0);
    return {torch::stack({position[0], position[1], position[2]}, -1),
            torch::stack({velocity[0], velocity[1], velocity[2]}, -1)};
  }

  Tensor forces(const Request& request) const {
    if (request.inputs) return request.vector_input(Kind::kForce).unsqueeze(0);
    return pushes(push_, request.steps, request.dtype).unsqueeze(1).expand({-1, request.trajectories, -1});
  }

  static Tensor pushes(double force, std::int64_t steps, torch::ScalarType dtype) {
    return torch::tensor({force, 0.0, 0.0}, dtype).expand({steps, 3});
  }

  // The rms difference of the velocities from those on rigid ground as a function of the stiffness. The body starts at
  // rest and is pushed by half and by twice the friction limit; there is no damping and nearly no creep.
  Table convergence(const Request& request) const {
    const double limit = physics.max_friction(), weight = physics.mass * physics.gravity;
    const std::vector<double> forces =
        limit > 0 ? std::vector<double>{limit / 2, 2 * limit} : std::vector<double>{weight};
    const Tensor stiffness = torch::logspace(2, 10, 17, 10, torch::kDouble);
    const Tensor zero = torch::zeros({3}, torch::kDouble);
    CompliantState first{zero.clone(), zero};
    first.position[Kind::kUp] = kind_.rest();
    Table table{{"push", "dt", "stiffness", "rms_error"}, {}};
    for (const double force : forces) {
      for (const int finer : {1, 10}) {
        const double dt = physics.dt / finer;
        const Tensor u = pushes(force, request.steps * finer, torch::kDouble);
        const auto rigid_body = kind_.body(physics, dt, CompliantGround::of(physics.mu, 1, 0));
        const Tensor rigid = velocities(first, u, [&](const CompliantState& now, const Tensor& push) {
          return Kind::rigid(now, push, rigid_body).next;
        });
        // All stiffnesses are a batch.
        CompliantGround ground = CompliantGround::of(physics.mu, 1, 0, {.sigma = kSharp, .beta = 0});
        ground.stiffness = stiffness;
        const Tensor difference =
            simulate(first, u, kind_.body(physics, dt, ground)).step.next.velocity - rigid.unsqueeze(1);
        const Tensor rms = difference.square().sum(-1).mean(0).sqrt();
        for (std::int64_t k = 0; k < stiffness.size(0); ++k) {
          table.add_row({force, dt, stiffness[k].item<double>(), rms[k].item<double>()});
        }
      }
    }
    return table;
  }

  Kind kind_;
  double stiffness_ = 1e4;
  double dissipation_ = 0.02;
  RegularizationOptions regularization_;
  double height_ = 0.05;
  double speed_ = 0.5;
  double push_ = 0;
};

}  // namespace

std::unique_ptr<System> make_compliant_particle() { return std::make_unique<CompliantSystem<ParticleKind>>(); }
std::unique_ptr<System> make_compliant_block() { return std::make_unique<CompliantSystem<BlockKind>>(); }

}  // namespace lcp::training
