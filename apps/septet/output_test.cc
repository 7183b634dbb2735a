#include "output.h"

#include <gmock/gmock.h>

namespace septet::app {
namespace {

Document two_gpus() {
  Document document;
  document.schema = "septet.test/1";
  document.fields["gpus"] = Json::array({{{"index", 0}, {"name", "A, \"big\""}, {"mig", true}},
                                         {{"index", 10}, {"name", "B"}, {"memory", {{"mib", 5}}}}});
  document.rows = "gpus";
  document.columns = {{"index", "GPU", Align::kRight},
                      {"name", "NAME"},
                      {"memory.mib", "MIB", Align::kRight},
                      {"mig", "MIG"}};
  document.notes = {"simulated"};
  return document;
}

TEST(Document, AlignsTheTableAndEndsNoLineInBlanks) {
  EXPECT_EQ(render(two_gpus(), OutputFormat::kTable),
            "GPU  NAME      MIB  MIG\n"
            "  0  A, \"big\"       yes\n"
            " 10  B           5\n"
            "simulated\n");
}

TEST(Document, QuotesCsvWhereNeeded) {
  EXPECT_EQ(render(two_gpus(), OutputFormat::kCsv),
            "index,name,memory.mib,mig\n"
            "0,\"A, \"\"big\"\"\",,yes\n"
            "10,B,5,\n");
}

TEST(Document, PutsTheSchemaFirstInJsonAndYaml) {
  const std::string json = render(two_gpus(), OutputFormat::kJson);
  const std::string yaml = render(two_gpus(), OutputFormat::kYaml);

  EXPECT_TRUE(json.starts_with("{\n  \"schema\": \"septet.test/1\",\n  \"gpus\": ["));
  EXPECT_TRUE(yaml.starts_with("schema: \"septet.test/1\"\ngpus:\n  - index: 0\n"));
}

TEST(Document, WritesAnAbsentValueAsNull) {
  Document document = two_gpus();
  document.fields = {{"instance", nullptr}};

  EXPECT_TRUE(render(document, OutputFormat::kYaml).ends_with("instance: ~\n"));
}

TEST(Document, SaysNoneForAnEmptyTable) {
  Document document = two_gpus();
  document.fields["gpus"] = Json::array();

  EXPECT_EQ(render(document, OutputFormat::kTable), "none\nsimulated\n");
}

}  // namespace
}  // namespace septet::app
