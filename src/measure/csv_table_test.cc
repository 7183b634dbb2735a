#include "measure/csv_table.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CsvTable, ReadsHeaderAndRowsWithTheirLines) {
  const CsvTable table = parse_csv("a,b\n1,2\n\n3,4\n");

  EXPECT_THAT(table.header, ElementsAre("a", "b"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(table.rows[1].cells, ElementsAre("3", "4"));
  EXPECT_EQ(table.rows[1].line, 4U);
  EXPECT_EQ(table.column("b"), 1U);
  EXPECT_EQ(table.column("c"), std::nullopt);
}

TEST(CsvTable, ToleratesTrailingCommaCrlfAndAMissingLastLineEnd) {
  const CsvTable table = parse_csv("a,b,\r\n1,2,\r\n3,4,");

  EXPECT_THAT(table.header, ElementsAre("a", "b"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[1].cells[1], "4");
}

TEST(CsvTable, UnderstandsQuotedCells) {
  const CsvTable table = parse_csv("a,b,c\n\"x, y\",\"say \"\"hi\"\"\",\"two\nlines\"\n1,\"\",3\n");

  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(table.rows[0].cells, ElementsAre("x, y", "say \"hi\"", "two\nlines"));
  EXPECT_THAT(table.rows[1].cells, ElementsAre("1", "", "3"));
  EXPECT_EQ(table.rows[1].line, 4U);
}

TEST(CsvTable, ReadsBackWhateverCsvCellWrites) {
  for (const std::string text : {"", "plain", "a,b", "\"", "\"\"", "line\nend", "\r", ",\",\n"}) {
    const CsvTable table = parse_csv("h,i\n" + csv_cell(text) + ",x\n");

    ASSERT_EQ(table.rows.size(), 1U) << text;
    EXPECT_THAT(table.rows[0].cells, ElementsAre(text, "x"));
  }
}

TEST(CsvTable, IsEmptyForAnEmptyText) {
  EXPECT_THAT(parse_csv("").header, IsEmpty());
  EXPECT_THAT(parse_csv("\n\n").rows, IsEmpty());
}

}  // namespace
}  // namespace septet::measure
