# LCP_INSTRUCTION_SETS: the instruction sets that the vector kernels are compiled for. A process uses the best one that
# its processor has. Everything else is compiled once.

set(TORCHLCP_ISAS "native" CACHE STRING
  "Instruction sets of the vector kernels: native, that is portable and the best of this machine, all, or a list of portable, avx2, avx512")
set(known portable)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND known avx2 avx512)
endif()

# The portable set and the best set of this machine. All sets are used for a build for another machine, or without
# /proc/cpuinfo.
set(LCP_NATIVE_INSTRUCTION_SETS ${known})
if(EXISTS /proc/cpuinfo AND NOT CMAKE_CROSSCOMPILING)
  file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
  string(REPLACE " " ";" flags "${flags}")
  set(LCP_NATIVE_INSTRUCTION_SETS portable)
  if("avx2" IN_LIST flags AND "fma" IN_LIST flags)
    set(best avx2)
    if("avx512f" IN_LIST flags AND "avx512bw" IN_LIST flags AND "avx512dq" IN_LIST flags AND "avx512vl" IN_LIST flags)
      set(best avx512)
    endif()
    list(APPEND LCP_NATIVE_INSTRUCTION_SETS ${best})
  endif()
endif()

if(TORCHLCP_ISAS STREQUAL "native")
  set(LCP_INSTRUCTION_SETS ${LCP_NATIVE_INSTRUCTION_SETS})
elseif(TORCHLCP_ISAS STREQUAL "all")
  set(LCP_INSTRUCTION_SETS ${known})
else()
  set(LCP_INSTRUCTION_SETS portable ${TORCHLCP_ISAS})
  list(REMOVE_DUPLICATES LCP_INSTRUCTION_SETS)
  foreach(isa IN LISTS LCP_INSTRUCTION_SETS)
    if(NOT isa IN_LIST known)
      message(FATAL_ERROR "TORCHLCP_ISAS must be native, all, or a list of ${known}; got ${TORCHLCP_ISAS}")
    endif()
  endforeach()
endif()
message(STATUS "Vector kernels: ${LCP_INSTRUCTION_SETS}")
