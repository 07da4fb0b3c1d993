#include "identification/system.h"

#include "identification/particle_mpec.h"
#include "identification/tripod_mpec.h"
#include "run/error.h"
#include "run/text.h"

namespace lcp::training {
namespace {

class Particles : public TrackSystem {
 public:
  const TrackFlags& tracks() const override { return flags_; }
  void add_bodies_to(CommandLine& line) override { flags_.add_bodies_to(line); }
  void add_estimate_to(CommandLine& line) override { flags_.add_estimate_to(line); }
  void validate(const CommandLine& line, const std::vector<std::string>& simulated) override {
    flags_.validate(line, simulated);
  }
  TrackProblem load(const RunFlags& run) const override { return load_particles(run, flags_); }
  std::unique_ptr<TrackModel> model(const TrackProblem& problem) const override {
    return std::make_unique<ParticleModel>(flags_, problem);
  }
  double first_weight() const override { return 1e-3; }
  TrackProgram program(const TrackProblem& problem, const NoiseBound& bound) const override {
    return particle_program(flags_, problem, bound);
  }
  ProgramMotion read(const TrackProgram& program, const MpecSolution& solution,
                     const TrackModel& model) const override {
    return read_particles(program, solution, model);
  }

 private:
  TrackFlags flags_ = particle_flags();
};

class Tripods : public TrackSystem {
 public:
  const TrackFlags& tracks() const override { return flags_.tracks; }
  void add_bodies_to(CommandLine& line) override { flags_.add_bodies_to(line); }
  void add_estimate_to(CommandLine& line) override { flags_.tracks.add_estimate_to(line); }
  void validate(const CommandLine& line, const std::vector<std::string>& simulated) override {
    flags_.validate(line, simulated);
  }
  TrackProblem load(const RunFlags& run) const override { return load_tripods(run, flags_); }
  std::unique_ptr<TrackModel> model(const TrackProblem& problem) const override {
    return std::make_unique<TripodModel>(flags_, problem);
  }
  double first_weight() const override { return 1; }
  TrackProgram program(const TrackProblem& problem, const NoiseBound& bound) const override {
    if (bound.size > 0 && bound.euclidean) throw UsageError("--bound-norm euclidean needs --system particle");
    return tripod_program(flags_, problem, bound);
  }
  ProgramMotion read(const TrackProgram& program, const MpecSolution& solution,
                     const TrackModel& model) const override {
    return read_tripods(flags_, program, solution, model);
  }

 private:
  TripodTrackFlags flags_;
};

struct Kind {
  const char* name;
  std::unique_ptr<TrackSystem> (*make)();
};
constexpr Kind kKinds[] = {{"particle", [] { return std::unique_ptr<TrackSystem>(new Particles()); }},
                           {"tripod", [] { return std::unique_ptr<TrackSystem>(new Tripods()); }}};

}  // namespace

SystemFlag::SystemFlag(int argc, const char* const* argv) : name_(early_value(argc, argv, "system", kKinds[0].name)) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name_) system_ = kind.make();
  }
  if (!system_) throw UsageError("--system must be " + listed(names_of(kKinds)) + "; got \"" + name_ + "\"");
}

void SystemFlag::add_to(CommandLine& line) {
  line.add<std::string>("system", name_,
                        "What moves: " + listed(names_of(kKinds)) +
                            " (particles that fall and slide, blocks that slide and turn on three supports). The "
                            "other flags and their defaults depend on it");
}

}  // namespace lcp::training
