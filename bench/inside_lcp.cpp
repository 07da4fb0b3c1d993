#include "inside_lcp.h"

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

namespace lcp::bench {
namespace {

using Clock = std::chrono::steady_clock;

thread_local int depth = 0;              // how many nested calls of lcp:: this thread is in
thread_local Clock::time_point entered;  // when the outermost of them began
thread_local Clock::duration inside{};   // the time of all outermost calls that have ended

struct Span : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  if (!name.starts_with("lcp::") && !name.starts_with("Lcp")) return nullptr;
  if (depth++ == 0) entered = Clock::now();
  return std::make_unique<Span>();
}

void leave(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr && --depth == 0) inside += Clock::now() - entered;
}

}  // namespace

InsideLcp::InsideLcp()
    : handle_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(enter, leave)
                                         .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {
  inside = {};
}

InsideLcp::~InsideLcp() { at::removeCallback(handle_); }

double InsideLcp::seconds() { return std::chrono::duration<double>(std::exchange(inside, {})).count(); }

}  // namespace lcp::bench
