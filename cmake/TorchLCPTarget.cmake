# What every target of this project has: C++20, warnings, sanitizers; and how a library is exported.

function(torchlcp_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-sign-compare)
  if(TORCHLCP_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(TORCHLCP_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${TORCHLCP_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${TORCHLCP_SANITIZE})
  endif()
endfunction()

# A library that is installed and exported as TorchLCP::<name>; the sources are given by target_sources.
function(torchlcp_export target name)
  torchlcp_target(${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT TorchLCPTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
