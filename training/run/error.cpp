#include "run/error.h"

#include <c10/util/Exception.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <sstream>
#include <streambuf>
#include <string_view>

namespace lcp::training {

namespace {

// Joins the lines of the text to one.
std::string joined(const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    all += (all.empty() ? "" : " ") + line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
  }
  return all;
}

// What LibTorch says of an allocation that failed, in one sentence; other messages as they are.
std::string readable(const std::string& message) {
  constexpr std::string_view kTried = "you tried to allocate ";
  const std::string shortage = "there is not enough memory";
  if (const auto place = message.find(kTried); place != std::string::npos) {
    const std::string rest = message.substr(place + kTried.size());
    return shortage + " for a tensor of " + rest.substr(0, rest.find_first_not_of("0123456789")) + " bytes";
  }
  return message.find("Storage size calculation overflowed") != std::string::npos ? shortage : message;
}

// Takes what is printed, and drops it.
struct Nowhere : std::streambuf {
  int overflow(int character) override { return traits_type::not_eof(character); }
};

// The exit status of the body.
int guarded(const std::string& program, const std::function<int()>& body, Processes use) {
  std::signal(SIGXFSZ, SIG_IGN);  // write(2) then fails at the file size limit, as it does on a full disk
  static Nowhere nowhere;
  std::ostream errors(std::cerr.rdbuf());
  ProcessGroup& group = ProcessGroup::current();
  const auto fail = [&](const std::string& message, int status) {
    if (group.may_report()) errors << program << ": " << joined(message) << std::endl;
    return status;
  };
  try {
    group.join(use);
    if (!group.is_first()) {
      if (use == Processes::kFirst) return 0;
      std::cout.rdbuf(&nowhere);
      std::cerr.rdbuf(&nowhere);
    }
    const int status = body();
    group.leave();
    return status;
  } catch (const UsageError& error) {
    return fail(error.what(), 2);
  } catch (const c10::Error& error) {
    return fail(readable(error.what_without_backtrace()), 1);
  } catch (const std::bad_alloc&) {
    return fail("there is not enough memory", 1);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}

}  // namespace

void run_program(const std::string& program, int (*body)(int argc, const char* const* argv), int argc,
                 const char* const* argv, Processes use) {
  int status = guarded(
      program, [&] { return body(argc, argv); }, use);
  if (!std::cout.flush() && status == 0) {
    std::cerr << program << ": cannot write to the standard output" << std::endl;
    status = 2;
  }
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace lcp::training
