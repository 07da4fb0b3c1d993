#include "run/error.h"

#include <c10/util/Exception.h>

#include <iostream>

namespace lcp::training {

int guarded(const std::string& program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const UsageError& error) {
    std::cerr << program << ": " << error.what() << std::endl;
    return 2;
  } catch (const c10::Error& error) {
    std::cerr << program << ": " << error.what_without_backtrace() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << std::endl;
  }
  return 1;
}

}  // namespace lcp::training
