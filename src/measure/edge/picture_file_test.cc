#include "measure/edge/picture_file.h"

#include <gmock/gmock.h>
#include <jpeglib.h>

#include <cstdio>
#include <cstdlib>

namespace septet::measure {
namespace {

using testing::HasSubstr;

// A JPEG of the picture at best quality; exif: the block to put in front, or empty.
std::string jpeg_of(const Picture& picture, const std::string& exif = {}) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &buffer, &size);
  jpeg.image_width = static_cast<JDIMENSION>(picture.width);
  jpeg.image_height = static_cast<JDIMENSION>(picture.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  if (!exif.empty()) {
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  std::vector<std::uint8_t> pixels = picture.pixels;
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = pixels.data() + jpeg.next_scanline * jpeg.image_width * 3;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string bytes(reinterpret_cast<const char*>(buffer), size);
  jpeg_destroy_compress(&jpeg);
  std::free(buffer);
  return bytes;
}

// Left half red, right half blue.
Picture red_and_blue() {
  Picture picture{.width = 32, .height = 16, .pixels = {}};
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const bool left = x < picture.width / 2;
      picture.pixels.insert(picture.pixels.end(), {static_cast<std::uint8_t>(left ? 254 : 0), 0,
                                                   static_cast<std::uint8_t>(left ? 0 : 254)});
    }
  }
  return picture;
}

int red_at(const Picture& picture, int x, int y) {
  return picture.pixels[static_cast<std::size_t>((y * picture.width + x) * 3)];
}

std::string exif_block(const std::string& byte_order, int orientation) {
  const auto number = [&](std::size_t value, std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) {
      const std::size_t place = byte_order == "II" ? i : bytes - 1 - i;
      text += static_cast<char>(value >> (8 * place) & 0xFFU);
    }
    return text;
  };
  // One directory with one entry: tag, type SHORT, one value, padded to four bytes.
  return std::string("Exif\0\0", 6) + byte_order + number(42, 2) + number(8, 4) + number(1, 2) +
         number(0x0112, 2) + number(3, 2) + number(1, 4) +
         number(static_cast<std::size_t>(orientation), 2) + number(0, 2) + number(0, 4);
}

TEST(PictureFile, DecodesJpeg) {
  const auto picture = decode_picture(jpeg_of(red_and_blue()), "a.jpg");

  ASSERT_TRUE(picture.ok()) << picture.error().text();
  EXPECT_EQ(picture->width, 32);
  EXPECT_EQ(picture->height, 16);
  EXPECT_NEAR(red_at(*picture, 2, 2), 254, 3);
  EXPECT_NEAR(red_at(*picture, 29, 2), 0, 3);
}

TEST(PictureFile, TurnsAJpegUprightByItsExifInEitherByteOrder) {
  for (const char* order : {"II", "MM"}) {
    const auto picture = decode_picture(jpeg_of(red_and_blue(), exif_block(order, 6)), "a.jpg");

    // Orientation 6: the camera's left is the picture's top.
    ASSERT_TRUE(picture.ok()) << picture.error().text();
    EXPECT_EQ(picture->width, 16);
    EXPECT_EQ(picture->height, 32);
    EXPECT_NEAR(red_at(*picture, 8, 2), 254, 3);
    EXPECT_NEAR(red_at(*picture, 8, 29), 0, 3);
  }
}

TEST(PictureFile, LivesWithEveryCutOffExifBlock) {
  const std::string whole = exif_block("MM", 6);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_TRUE(decode_picture(jpeg_of(red_and_blue(), whole.substr(0, size)), "a.jpg").ok());
  }
}

TEST(PictureFile, DecodesThePngsOfTheDigitsModel) {
  const auto picture = read_picture(std::string(SEPTET_SOURCE_DIR) + "/models/digits/images/7.png");

  ASSERT_TRUE(picture.ok()) << picture.error().text();
  EXPECT_EQ(picture->width, 128);
  EXPECT_EQ(picture->channels, 3);
  EXPECT_EQ(picture->pixels.size(), 128U * 128U * 3U);
}

TEST(PictureFile, DecodesBinaryPnm) {
  const auto picture = decode_picture(std::string("P6 2 1 255\n\1\2\3\4\5\6", 17), "a.ppm");

  ASSERT_TRUE(picture.ok()) << picture.error().text();
  EXPECT_THAT(picture->pixels, testing::ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(PictureFile, RefusesWhatIsNoPictureByName) {
  for (const std::string& bytes : {std::string(), std::string("hello"), std::string("\xFF\xD8\xFF"),
                                   std::string("\x89PNG\r\n\x1a\n")}) {
    const auto picture = decode_picture(bytes, "notes.txt");

    ASSERT_FALSE(picture.ok());
    EXPECT_THAT(picture.error().message, HasSubstr("unable to decode image notes.txt"));
  }
}

TEST(PictureFile, SurvivesEveryCutOffFile) {
  const std::string whole = jpeg_of(red_and_blue());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto picture = decode_picture(std::string_view(whole).substr(0, size), "cut.jpg");
    if (picture.ok()) {
      EXPECT_EQ(picture->pixels.size(), 32U * 16U * 3U);
    }
  }
}

TEST(PictureFile, NamesAFileThatCannotBeRead) {
  const auto picture = read_picture("/nonexistent/mug.jpg");

  ASSERT_FALSE(picture.ok());
  EXPECT_EQ(picture.error().message, "unable to read image file /nonexistent/mug.jpg");
}

}  // namespace
}  // namespace septet::measure
