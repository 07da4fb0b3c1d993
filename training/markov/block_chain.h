// A block whose contact is in one of several hidden states at each step, such as stick, slip and detach, with an LCP in
// each of them.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 4.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lcp/learning/markov_chain.h"
#include "run/command_line.h"
#include "run/physics_flags.h"

namespace lcp::training {

/// Trajectories of one length; shorter ones are filled up with steps that were not observed.
struct Sequences {
  torch::Tensor v, u, v_next;  ///< [trajectories, steps]: m/s, N, m/s
  torch::Tensor observed;      ///< [trajectories, steps], bool
  torch::Tensor state;         ///< [trajectories, steps], int64, the hidden state; undefined for measured data

  Sequences to(torch::ScalarType dtype) const;
};

/// The chain that simulated data come from.
struct TrueChain {
  torch::Tensor mu;              ///< [s], friction coefficient in each state
  learning::MarkovChain states;  ///< begins in each state with the same probability
  double sigma;                  ///< m/s, standard deviation of the noise on v_next
};

TrueChain true_chain(const PhysicsFlags& block, const std::vector<double>& factors, double persistence, double sigma);

/// v_next of a block in each of the states, [..., s]: each is the solution of the LCP of a block with its mu, [s].
torch::Tensor steps_in_states(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& mu,
                              const PhysicsFlags& block);

/// Random trajectories of the chain under the forces u, [trajectories, steps], from velocities v, [trajectories]. Noise
/// acts on the velocity itself: each step begins with v_next of the one before, noise and all.
Sequences simulate_chain(const TrueChain& chain, const torch::Tensor& v, const torch::Tensor& u,
                         const PhysicsFlags& block, const at::Generator& random);

/// Reads v,u,v_next and trajectory, whose rows are consecutive steps. One trajectory in five goes to `heldout`. Throws
/// a UsageError.
std::pair<Sequences, Sequences> read_sequences(const std::string& file);

/// What is learned: the friction and the transitions of the hidden states, and the size of the noise.
class BlockChain : public torch::nn::Module {
 public:
  /// Random parameters. The friction coefficients are of the size that the forces, whose root mean square is
  /// `force` [N], make visible.
  BlockChain(std::int64_t states, const PhysicsFlags& block, double force, const at::Generator& random);

  /// log p(v_next) of each trajectory, [trajectories], of velocities in units of `unit` m/s.
  torch::Tensor log_likelihood(const Sequences& data, double unit) const;

  torch::Tensor mu() const { return root_mu_.square(); }    ///< [s]
  torch::Tensor sigma() const { return log_sigma_.exp(); }  ///< m/s
  learning::MarkovChain states() const { return {initial_.log_softmax(-1), transition_.log_softmax(-1)}; }

  /// The learned chain, its states in the descending order of their friction.
  TrueChain sorted() const;

 private:
  PhysicsFlags block_;
  torch::Tensor root_mu_;     // [s]
  torch::Tensor log_sigma_;   // []
  torch::Tensor initial_;     // [s]
  torch::Tensor transition_;  // [s, s]
};

/// log p of each step's v_next in each state, [trajectories, steps, s], of velocities in units of `unit` m/s.
torch::Tensor log_observations(const Sequences& data, const torch::Tensor& mu, const torch::Tensor& sigma,
                               const PhysicsFlags& block, double unit);

}  // namespace lcp::training
