#pragma once

/// Marks what the shared library offers; everything else in it is hidden.
#define LCP_API __attribute__((visibility("default")))
