#include "run/process_group.h"

#include <sys/prctl.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "run/error.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// A collective waits for the slowest process, which may compute for long. That a process has ended shows by its
// connections, not by this time.
constexpr std::chrono::hours kTimeout(24 * 365);

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

std::string required(const char* name) {
  if (auto value = variable(name)) return *value;
  throw UsageError(std::string("the environment has WORLD_SIZE but not ") + name + "; torchrun sets both");
}

std::int64_t number(const char* name, std::int64_t least, std::int64_t most) {
  const std::string text = required(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  throw UsageError(std::string(name) + " of the environment must be a number from " + std::to_string(least) + " to " +
                   std::to_string(most) + "; got \"" + text + "\"");
}

Tensor tensor_of(const std::string& bytes, std::int64_t size) {
  Tensor tensor = torch::zeros({size}, torch::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

std::string bytes_of(const Tensor& tensor, std::int64_t size) {
  return {static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::size_t>(size)};
}

}  // namespace

struct ProcessGroup::Connection {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;

  // Waits for a collective. What Gloo throws names addresses; that a process has ended is what a user can act on.
  static void wait(const c10::intrusive_ptr<c10d::Work>& work) {
    try {
      work->wait();
    } catch (const std::exception&) {
      throw std::runtime_error("another process of the run has ended");
    }
  }
};

ProcessGroup::ProcessGroup() = default;
ProcessGroup::~ProcessGroup() = default;

ProcessGroup& ProcessGroup::current() {
  static ProcessGroup group;
  return group;
}

void ProcessGroup::join(Processes use) {
  if (!variable("WORLD_SIZE")) return;
  constexpr std::int64_t kMostProcesses = 1 << 20;
  started_ = number("WORLD_SIZE", 1, kMostProcesses);
  rank_ = number("RANK", 0, started_ - 1);
  // torchrun starts each process in a session of its own, which would survive it.
  if (variable("TORCHELASTIC_RUN_ID")) prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (started_ == 1 || use == Processes::kFirst) return;

  // The agent of torchrun has a store already; other launchers leave it to the first process.
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(number("MASTER_PORT", 1, 65535));
  options.isServer = is_first() && variable("TORCHELASTIC_USE_AGENT_STORE") != "True";
  const std::string attempt = variable("TORCHELASTIC_RESTART_COUNT").value_or("0");
  const auto store = c10::make_intrusive<c10d::TCPStore>(required("MASTER_ADDR"), options);
  connection_ = std::make_unique<Connection>();
  connection_->store = c10::make_intrusive<c10d::PrefixStore>("torchlcp/" + attempt, store);
  try {
    connection_->group = c10::make_intrusive<c10d::ProcessGroupGloo>(
        connection_->store, static_cast<int>(rank_), static_cast<int>(started_),
        c10d::ProcessGroupGloo::Options::create_default(std::chrono::milliseconds(kTimeout)));
  } catch (const c10::Error& error) {
    throw std::runtime_error("cannot connect to the other processes of the run: " +
                             std::string(error.what_without_backtrace()));
  }
  size_ = started_;
  largest(0);  // so that none goes on, and may end, while others still connect
}

std::string ProcessGroup::description(std::int64_t threads) const {
  if (started_ == 1) return "";
  const std::string processes = std::to_string(started_) + " processes";
  if (size_ == 1) return processes + ", of which the first does all: this program does not divide its work";
  const auto set = variable("OMP_NUM_THREADS");
  return processes + " with " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
         " each, by --threads" + (set ? "; OMP_NUM_THREADS is " + *set : "");
}

std::int64_t ProcessGroup::largest(std::int64_t number) {
  if (!connection_) return number;
  std::vector<Tensor> value = {torch::tensor({number}, torch::kLong)};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  Connection::wait(connection_->group->allreduce(value, options));
  return value[0].item<std::int64_t>();
}

std::string ProcessGroup::of_first(const std::string& bytes) {
  if (!connection_) return bytes;
  const std::int64_t size = largest(is_first() ? static_cast<std::int64_t>(bytes.size()) : 0);
  std::vector<Tensor> value = {is_first() ? tensor_of(bytes, size) : torch::zeros({size}, torch::kByte)};
  if (size > 0) Connection::wait(connection_->group->broadcast(value));
  return bytes_of(value[0], size);
}

double ProcessGroup::of_first(double number) {
  if (!connection_) return number;
  std::vector<Tensor> value = {torch::tensor({number}, torch::kDouble)};
  Connection::wait(connection_->group->broadcast(value));
  return value[0].item<double>();
}

std::vector<Tensor> ProcessGroup::gather(const Tensor& own) {
  if (!connection_) return {own};
  std::vector<std::vector<Tensor>> all(1);
  for (std::int64_t k = 0; k < size_; ++k) all[0].push_back(torch::empty_like(own, at::MemoryFormat::Contiguous));
  std::vector<Tensor> mine = {own.detach().contiguous()};
  Connection::wait(connection_->group->allgather(all, mine));
  return all[0];
}

std::vector<std::string> ProcessGroup::gather(const std::string& own) {
  if (!connection_) return {own};
  const std::vector<Tensor> sizes = gather(torch::tensor({static_cast<std::int64_t>(own.size())}, torch::kLong));
  std::int64_t most = 1;
  for (const Tensor& size : sizes) most = std::max(most, size.item<std::int64_t>());
  const std::vector<Tensor> padded = gather(tensor_of(own, most));
  std::vector<std::string> all;
  all.reserve(padded.size());
  for (std::size_t k = 0; k < padded.size(); ++k) all.push_back(bytes_of(padded[k], sizes[k].item<std::int64_t>()));
  return all;
}

std::int64_t ProcessGroup::take_number(const std::string& count) {
  if (connection_) return connection_->store->add("count/" + count, 1) - 1;
  static std::mutex mutex;
  static std::map<std::string, std::int64_t> next;
  const std::scoped_lock lock(mutex);
  return next[count]++;
}

bool ProcessGroup::may_report() {
  if (!connection_) return true;
  try {
    return connection_->store->add("reported", 1) == 1;
  } catch (const std::exception&) {  // torchrun has ended
    return true;
  }
}

}  // namespace lcp::training
