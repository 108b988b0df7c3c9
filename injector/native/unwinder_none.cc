// No libunwind was found when this was built: there are no native stacks.
#include "injector/native/unwinder.h"

namespace rfinject {

bool PrepareUnwinder() noexcept { return false; }
size_t Unwind(std::span<StackFrame>) noexcept { return 0; }

}  // namespace rfinject
