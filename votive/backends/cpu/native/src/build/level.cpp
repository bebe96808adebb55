// Prints the level of this processor while the build is configured.
#include <cstdio>

#include "../vt/level.h"

int main() { std::fputs(vt::level(), stdout); }
