#include "os/device_rules.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace septet::os {

namespace {

Error device_error(int reason, const std::string& what) {
  const bool denied = reason == EPERM || reason == EACCES;
  const bool absent = reason == ENOSYS || reason == EINVAL || reason == ENOENT;
  return make_error(denied   ? ErrorKind::kPermission
                    : absent ? ErrorKind::kPrecondition
                             : ErrorKind::kFailed,
                    fmt::format("cannot restrict devices: {}: {}", what, std::strerror(reason)),
                    denied ? "run the daemon as root" : "");
}

// --- the eBPF program, built instruction by instruction (linux/bpf.h: struct bpf_insn) ----------
//
//   context: u32 access_type (low 16 bits: 1 block, 2 character), u32 major, u32 minor
//   r2 = type, r3 = major, r4 = minor; r0 = 1 allows, 0 forbids

bpf_insn instruction(unsigned code, unsigned destination, unsigned source, int offset, int value) {
  bpf_insn result{};
  result.code = static_cast<__u8>(code);
  result.dst_reg = static_cast<__u8>(destination & 0xF);
  result.src_reg = static_cast<__u8>(source & 0xF);
  result.off = static_cast<__s16>(offset);
  result.imm = value;
  return result;
}

bpf_insn load_word(unsigned destination, int offset) {
  return instruction(BPF_LDX | BPF_W | BPF_MEM, destination, BPF_REG_1, offset, 0);
}
bpf_insn jump_unless_equal(unsigned reg, unsigned value, std::size_t over) {
  return instruction(BPF_JMP | BPF_JNE | BPF_K, reg, 0, static_cast<int>(over),
                     static_cast<int>(value));
}
bpf_insn set_result(int value) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, value);
}
bpf_insn leave() { return instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }

std::vector<bpf_insn> device_program(const std::vector<GuardedMajor>& majors) {
  constexpr unsigned kType = BPF_REG_2;
  constexpr unsigned kMajor = BPF_REG_3;
  constexpr unsigned kMinor = BPF_REG_4;
  std::vector<bpf_insn> program = {load_word(kType, 0),
                                   instruction(BPF_ALU | BPF_AND | BPF_K, kType, 0, 0, 0xFFFF),
                                   load_word(kMajor, 4), load_word(kMinor, 8)};
  // Not a character device: allowed.
  program.insert(program.end(),
                 {instruction(BPF_JMP | BPF_JEQ | BPF_K, kType, 0, 2, BPF_DEVCG_DEV_CHAR),
                  set_result(1), leave()});
  for (const GuardedMajor& guarded : majors) {
    // Three instructions per allowed minor, then two to forbid the rest.
    const std::size_t block = guarded.allowed_minors.size() * 3 + 2;
    program.push_back(jump_unless_equal(kMajor, guarded.major, block));
    for (const unsigned minor : guarded.allowed_minors) {
      program.insert(program.end(), {jump_unless_equal(kMinor, minor, 2), set_result(1), leave()});
    }
    program.insert(program.end(), {set_result(0), leave()});
  }
  program.insert(program.end(), {set_result(1), leave()});
  return program;
}

int bpf_call(int command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

}  // namespace

Result<Ok> deny_devices_v1(const std::string& devices_folder,
                           const std::vector<GuardedMajor>& majors) {
  const std::string path = devices_folder + "/devices.deny";
  for (const GuardedMajor& guarded : majors) {
    for (const unsigned minor : guarded.known_minors) {
      const auto& allowed = guarded.allowed_minors;
      if (std::find(allowed.begin(), allowed.end(), minor) != allowed.end()) {
        continue;
      }
      // One write per line: the kernel reads one rule at a time.
      const std::string rule = fmt::format("c {}:{} rwm", guarded.major, minor);
      const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (!fd.valid() ||
          write(fd.get(), rule.data(), rule.size()) != static_cast<ssize_t>(rule.size())) {
        return device_error(errno, fmt::format("cannot write '{}' to {}", rule, path));
      }
    }
  }
  return Ok{};
}

Result<Ok> attach_device_program(const std::string& v2_folder,
                                 const std::vector<GuardedMajor>& majors) {
  const UniqueFd folder(open(v2_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) {
    return device_error(errno, "cannot open " + v2_folder);
  }
  const std::vector<bpf_insn> program = device_program(majors);
  static constexpr char kLicence[] = "GPL";
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  load.insns = reinterpret_cast<__u64>(program.data());
  load.insn_cnt = static_cast<__u32>(program.size());
  load.license = reinterpret_cast<__u64>(kLicence);
  const UniqueFd loaded(bpf_call(BPF_PROG_LOAD, load));
  if (!loaded.valid()) {
    return device_error(errno, "the kernel refuses the device program");
  }
  bpf_attr attach{};
  attach.target_fd = static_cast<__u32>(folder.get());
  attach.attach_bpf_fd = static_cast<__u32>(loaded.get());
  attach.attach_type = BPF_CGROUP_DEVICE;
  // Beside programs of groups above, which still have their say.
  attach.attach_flags = BPF_F_ALLOW_MULTI;
  if (bpf_call(BPF_PROG_ATTACH, attach) != 0) {
    return device_error(errno, "cannot attach the device program to " + v2_folder);
  }
  return Ok{};
}

}  // namespace septet::os
