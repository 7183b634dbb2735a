// The command line itself: wrong words, and completion by the shell.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "simulated_machine.h"

namespace septet::acceptance {
namespace {

using testing::HasSubstr;
using testing::Not;

// What bash offers for the last of these words.
std::string completed(const std::string& words) {
  const SimulatedMachine machine("A30");
  const std::string script = machine.write_file(
      "complete.sh", fmt::format("source <({} completion bash)\n"
                                 "COMP_WORDS=({}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
                                 "_septet; printf '[%s]' \"${{COMPREPLY[@]}}\"\n",
                                 SEPTET_PROGRAM, words));
  return machine.run("bash " + script).output;
}

TEST(Completion, OffersVerbsFlagsAndTheirWords) {
  EXPECT_EQ(completed("septet pl"), "[plan]");
  EXPECT_THAT(completed("septet --simulate A30 apply --de"), HasSubstr("[--defragment]"));
  EXPECT_EQ(completed("septet lease acq"), "[acquire]");
  EXPECT_EQ(completed("septet gpus -o js"), "[json]");
  EXPECT_THAT(completed("septet gpus --"),
              testing::AllOf(HasSubstr("[--simulate]"), Not(HasSubstr("[--defragment]"))));
}

TEST(CommandLine, AnUnknownWordNamesTheNearest) {
  const SimulatedMachine machine("A30");

  const Outcome verb = machine.run(SEPTET_PROGRAM " gpsu");
  const Outcome flag = machine.run(SEPTET_PROGRAM " apply --explian 1g.6gb");
  const Outcome nothing = machine.run(SEPTET_PROGRAM " --dry-run");

  EXPECT_EQ(verb.exit_code, 2);
  EXPECT_THAT(verb.output, HasSubstr("no verb 'gpsu'; did you mean 'gpus'?"));
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.output, HasSubstr("did you mean '--explain'?"));
  EXPECT_THAT(nothing.output, HasSubstr("septet --help lists the verbs"));
}

TEST(Completion, AnUnknownShellIsAUsageError) {
  const SimulatedMachine machine("A30");
  EXPECT_EQ(machine.septet("completion tcsh").exit_code, 2);
}

}  // namespace
}  // namespace septet::acceptance
