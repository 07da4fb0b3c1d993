#pragma once

/// Marks the functions that the shared library exports; all others are hidden.
#define LCP_API __attribute__((visibility("default")))
