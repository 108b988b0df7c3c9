#include "cli/attach/call_stub.h"

#include <cstring>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace rfinject::cli {

#ifdef __x86_64__

// An entry comes here with the function's address in r11, which no caller expects to be kept. The numbers are those
// of StubData; rbx has its address. System call 39 is getpid.
asm(R"(
  .pushsection .rodata
  .balign 16
rfinject_call_stub:
  pushq %rax
  pushq %rbx
  movq rfinject_call_stub_data(%rip), %rbx
  cmpl $0, (%rbx)
  jne 1f
  cmpl $0, 4(%rbx)
  je 2f
1:
  popq %rbx
  popq %rax
  jmp *%r11
2:
  pushq %rbp
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %r10
  pushq %r11
  movl $39, %eax
  syscall
  cmpl %eax, 1080(%rbx)
  je 8f
  movl $1, 4(%rbx)
  jmp 9f
8:
  xorl %eax, %eax
  movl $3, %ecx
  lock cmpxchgl %ecx, (%rbx)
  jne 9f
  cmpl $0, 4(%rbx)
  je 3f
  movl $0, (%rbx)
  jmp 9f
3:
  movq %rsp, %rbp
  subq 1064(%rbx), %rsp
  andq $-64, %rsp
  xorl %eax, %eax
  movq %rax, 512(%rsp)
  movq %rax, 520(%rsp)
  movq %rax, 528(%rsp)
  movq %rax, 536(%rsp)
  movq %rax, 544(%rsp)
  movq %rax, 552(%rsp)
  movq %rax, 560(%rsp)
  movq %rax, 568(%rsp)
  movl 1072(%rbx), %eax
  xorl %edx, %edx
  xsave64 (%rsp)
  movq 1040(%rbx), %rdi
  movl $2, %esi
  call *1016(%rbx)
  testq %rax, %rax
  jz 4f
  movq %rax, %rdi
  movq 1048(%rbx), %rsi
  call *1024(%rbx)
  testq %rax, %rax
  jz 4f
  movq 1056(%rbx), %rdi
  call *%rax
  movq %rax, %rsi
  movl $1, %ecx
  testq %rsi, %rsi
  jz 7f
  cmpb $0, (%rsi)
  je 5f
  movl $2, %ecx
  jmp 5f
4:
  call *1032(%rbx)
  movq %rax, %rsi
  movl $2, %ecx
5:
  leaq 8(%rbx), %rdi
  movl $1000, %edx
  testq %rsi, %rsi
  jz 7f
6:
  movb (%rsi), %al
  movb %al, (%rdi)
  incq %rsi
  incq %rdi
  testb %al, %al
  jz 7f
  decl %edx
  jnz 6b
  movb $0, (%rdi)
7:
  movl %ecx, (%rbx)
  movl 1072(%rbx), %eax
  xorl %edx, %edx
  xrstor64 (%rsp)
  movq %rbp, %rsp
9:
  popq %r11
  popq %r10
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  popq %rbp
  popq %rbx
  popq %rax
  jmp *%r11
  .balign 8
rfinject_call_stub_data:
  .quad 0
rfinject_call_stub_end:
  .popsection
)");

extern "C" {
[[gnu::visibility("hidden")]] extern const char rfinject_call_stub[], rfinject_call_stub_data[],
    rfinject_call_stub_end[];
}

size_t StubSize() {
  const auto size = static_cast<size_t>(rfinject_call_stub_end - rfinject_call_stub);
  return (size + kStubEntry - 1) / kStubEntry * kStubEntry;
}

std::string MakeStub(uint64_t data, const std::vector<uint64_t>& functions) {
  std::string code(StubSize() + functions.size() * kStubEntry, '\xcc');
  std::memcpy(code.data(), rfinject_call_stub, static_cast<size_t>(rfinject_call_stub_end - rfinject_call_stub));
  std::memcpy(code.data() + (rfinject_call_stub_data - rfinject_call_stub), &data, sizeof data);
  // endbr64; movabs $function, %r11; jmp stub
  constexpr char kBegin[] = "\xf3\x0f\x1e\xfa\x49\xbb";
  constexpr size_t kAddress = sizeof kBegin - 1, kJump = kAddress + sizeof(uint64_t), kEnd = kJump + 5;
  for (size_t i = 0; i < functions.size(); ++i) {
    const size_t at = StubSize() + i * kStubEntry;
    const auto back = static_cast<int32_t>(-static_cast<int64_t>(at + kEnd));
    std::memcpy(code.data() + at, kBegin, kAddress);
    std::memcpy(code.data() + at + kAddress, &functions[i], sizeof functions[i]);
    code[at + kJump] = '\xe9';
    std::memcpy(code.data() + at + kJump + 1, &back, sizeof back);
  }
  return code;
}

void SetVectors(StubData* data) {
  // x87, SSE, AVX, and the three parts of AVX-512: as the loader saves them where it binds a function at its first
  // call.
  data->vectors = 0xe7;
  unsigned int a = 0, b = 0, c = 0, d = 0;
  // EBX of leaf 13: the size of all parts that the system has enabled.
  data->vectors_size = __get_cpuid_count(13, 0, &a, &b, &c, &d) != 0 ? b : 0;
}

#else

size_t StubSize() { return 0; }
std::string MakeStub(uint64_t, const std::vector<uint64_t>&) { return {}; }
void SetVectors(StubData*) {}

#endif

}  // namespace rfinject::cli
