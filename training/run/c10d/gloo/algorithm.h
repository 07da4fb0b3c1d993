// Gloo's headers are not in PyTorch's wheels, but those of its process group include them. What they name of Gloo is
// declared in this folder; LibTorch has the definitions. Only process_group.cpp is compiled with it.
#pragma once
