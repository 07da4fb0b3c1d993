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
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "run/error.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// Each process counts a number of the store up this often. A process whose number was the same at kSilences looks at
// it, which are this long apart, has ended: a collective may wait for the slowest process, but not for a dead one.
constexpr std::chrono::seconds kBeat(1);
constexpr int kSilences = 5;

// A process that waits looks into the store after a tenth of the time that it has waited, or after this time. The store
// can wait itself, but logs a line whenever it has waited in vain.
constexpr std::chrono::milliseconds kLongestPause(10);

// The store takes values of at most 8 MiB; longer ones are cut into pieces.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

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

}  // namespace

struct ProcessGroup::Connection {
  Connection(c10::intrusive_ptr<c10d::Store> store_of_all, std::int64_t own_rank, std::int64_t processes)
      : store(std::move(store_of_all)), rank(own_rank), size(processes) {
    std::thread beating([beats = store->clone(), name = beats_of(rank)] {  // by a connection of its own
      try {
        for (;; std::this_thread::sleep_for(kBeat)) beats->add(name, 1);
      } catch (const std::exception&) {  // the process that has the store has ended
      }
    });
    beating.detach();  // it ends with the process
  }

  static std::string beats_of(std::int64_t k) { return "beats/" + std::to_string(k); }

  // Waits until the store has all of these. Throws where another process has ended before.
  void await(const std::vector<std::string>& keys) {
    using Clock = std::chrono::steady_clock;
    std::vector<std::int64_t> beats(static_cast<std::size_t>(size), -1), silences(beats.size());
    const Clock::time_point start = Clock::now();
    Clock::time_point look = start + kBeat;
    while (!store->check(keys)) {
      const Clock::time_point now = Clock::now();
      std::this_thread::sleep_for(std::min<Clock::duration>((now - start) / 10, kLongestPause));
      if (now < look) continue;
      look = now + kBeat;
      for (std::size_t k = 0; k < beats.size(); ++k) {
        const std::int64_t before = std::exchange(beats[k], store->add(beats_of(static_cast<std::int64_t>(k)), 0));
        silences[k] = beats[k] == before ? silences[k] + 1 : 0;
        if (silences[k] == kSilences) throw std::runtime_error(beats_of(k) + " has ended");
      }
    }
  }

  // What each process has. Its values are removed when all have the next ones, and so have read these.
  std::vector<std::string> gather(const std::string& own) {
    const auto key = [name = "gathered/" + std::to_string(gathered++)](std::int64_t k, std::size_t piece) {
      return name + "/" + std::to_string(k) + "/" + std::to_string(piece);
    };
    std::vector<std::string> written, all(static_cast<std::size_t>(size));
    for (std::size_t piece = 0; piece * kPieceBytes <= own.size(); ++piece) {
      written.push_back(key(rank, piece));
      store->set(written.back(), own.substr(piece * kPieceBytes, kPieceBytes));
    }
    std::vector<std::int64_t> open(all.size());  // the processes of which there are further pieces
    std::iota(open.begin(), open.end(), 0);
    for (std::size_t piece = 0; !open.empty(); ++piece) {
      std::vector<std::string> keys;
      for (const std::int64_t k : open) keys.push_back(key(k, piece));
      await(keys);
      const auto values = store->multiGet(keys);
      for (std::size_t i = 0; i < open.size(); ++i) all[open[i]].append(values[i].begin(), values[i].end());
      std::erase_if(open, [&](std::int64_t k) { return all[k].size() < (piece + 1) * kPieceBytes; });
    }
    for (const std::string& name : std::exchange(earlier, std::move(written))) store->deleteKey(name);
    return all;
  }

  c10::intrusive_ptr<c10d::Store> store;
  const std::int64_t rank, size;
  std::int64_t gathered = 0;         // the number of calls of gather
  std::vector<std::string> earlier;  // the keys that the last of them has written
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
  serves_ = options.isServer = is_first() && variable("TORCHELASTIC_USE_AGENT_STORE") != "True";
  const std::string attempt = variable("TORCHELASTIC_RESTART_COUNT").value_or("0");
  const auto store = c10::make_intrusive<c10d::TCPStore>(required("MASTER_ADDR"), options);
  connection_ = std::make_unique<Connection>(c10::make_intrusive<c10d::PrefixStore>("torchlcp/" + attempt, store),
                                             rank_, started_);
  size_ = started_;
  largest(0);  // so that none goes on, and may end, while others still connect
}

void ProcessGroup::leave() {
  if (!connection_) return;
  const std::string all = "all have left";
  try {
    if (connection_->store->add("left", 1) == size_) connection_->store->set(all, "");
    if (serves_) connection_->await({all});
  } catch (const std::exception&) {  // nobody is left
  }
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
  for (const std::string& each : gather(std::to_string(number)))
    number = std::max<std::int64_t>(number, std::stoll(each));
  return number;
}

std::string ProcessGroup::of_first(const std::string& bytes) { return gather(is_first() ? bytes : "").front(); }

double ProcessGroup::of_first(double number) {
  return gather(torch::tensor({number}, torch::kDouble)).front().item<double>();
}

std::vector<Tensor> ProcessGroup::gather(const Tensor& own) {
  const Tensor data = own.detach().contiguous();
  std::vector<Tensor> all;
  for (const std::string& bytes : gather(std::string(static_cast<const char*>(data.const_data_ptr()), data.nbytes()))) {
    all.push_back(torch::empty_like(data));
    std::memcpy(all.back().mutable_data_ptr(), bytes.data(), bytes.size());
  }
  return all;
}

std::vector<std::string> ProcessGroup::gather(const std::string& own) {
  if (!connection_) return {own};
  try {
    return connection_->gather(own);
  } catch (const std::exception&) {  // what c10d throws names addresses; that a process has ended is of use
    throw std::runtime_error("another process of the run has ended");
  }
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
