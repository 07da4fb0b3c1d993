// Learns f and G of a sliding block from velocities, inputs and known friction forces.
#include "direct/direct.h"
#include "run/error.h"

int main(int argc, char** argv) {
  lcp::training::run_program(
      "train_direct", [&] { return lcp::training::train_direct_model(lcp::nn::DirectForces::kFriction, argc, argv); },
      lcp::training::Processes::kDivided);
}
