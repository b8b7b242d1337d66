// SPDX-License-Identifier: Apache-2.0
// Windows over sound, and how loud it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "base/error.hpp"
#include "decode/random.hpp"
#include "tasks/fake_window_model.hpp"
#include "tasks/sound_levels.hpp"
#include "tasks/sound_window.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using Sound = std::vector<float>;

TEST(SoundWindow, HasTheNeighboursOfItsPlace) {
  FakeSource source({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  SoundWindow sound(source, 4, 2);
  EXPECT_EQ(sound.move(0), 4);
  EXPECT_THAT(sound.samples(4, false), ElementsAre(3, 2, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(sound.samples(3, true), ElementsAre(3, 2, 1, 2, 3, 0, 0, 0));
  EXPECT_EQ(sound.move(1), 4);
  EXPECT_THAT(sound.samples(4, false), ElementsAre(2, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(sound.move(6), 4);
  EXPECT_THAT(sound.samples(4, false), ElementsAre(5, 6, 7, 8, 9, 10, 11, 0));
  EXPECT_FALSE(sound.move(8) == 4);
  EXPECT_THAT(sound.inside(), ElementsAre(9, 10, 11));
  EXPECT_THAT(sound.samples(3, false), ElementsAre(7, 8, 9, 10, 11, 0, 0, 0));
  EXPECT_EQ(sound.move(50), 0);
  EXPECT_THAT(sound.inside(), ElementsAre());
  EXPECT_TRUE(sound.ended());
  EXPECT_EQ(sound.read(), 11);
  EXPECT_THROW(sound.move(49), Error);
}

TEST(SoundWindow, ShortAndEmptySources) {
  FakeSource one({7});
  SoundWindow sound(one, 4, 2);
  EXPECT_EQ(sound.move(0), 1);
  EXPECT_THAT(sound.samples(1, false), ElementsAre(0, 0, 7, 0, 0, 0, 0, 0));
  FakeSource none({});
  SoundWindow silence(none, 4, 2);
  EXPECT_EQ(silence.move(0), 0);
  EXPECT_THAT(silence.samples(0, false), testing::Each(0));
}

TEST(SoundWindow, AnyWayForward) {
  rc::check([] {
    const auto total = *rc::gen::inRange<int64_t>(0, 300), window = *rc::gen::inRange<int64_t>(1, 40);
    const auto margin = *rc::gen::inRange<int64_t>(0, 9);
    Sound all;
    for (int64_t i = 0; i < total; ++i) all.push_back(float(i + 1));
    FakeSource source(all);
    SoundWindow sound(source, window, margin);
    int64_t at = 0;
    for (int i = 0; i < 12; ++i) {
      const int64_t inside = sound.move(at);
      RC_ASSERT(inside == std::max<int64_t>(0, std::min(window, total - at)));
      const auto got = sound.samples(inside, false);
      for (int64_t k = 0; k < int64_t(got.size()); ++k) {
        int64_t place = at - margin + k;
        if (place < 0) place = -place;
        RC_ASSERT(got[size_t(k)] == (place < total ? float(place + 1) : 0.0f));
      }
      at += *rc::gen::inRange<int64_t>(0, 60);
    }
  });
}

Sound noise(size_t count, float loudness, uint64_t seed = 1) {
  Random random(seed);
  Sound x(count);
  for (float& s : x) s = loudness * float(random.uniform() * 2 - 1);
  return x;
}

Sound tone(size_t count, float loudness) {
  Sound x(count);
  for (size_t i = 0; i < count; ++i) x[i] = loudness * float(std::sin(0.17 * double(i)));
  return x;
}

// Syllables: a tone whose strength swings four times a second.
Sound speech(size_t count, float loudness) {
  Sound x = tone(count, loudness);
  for (size_t i = 0; i < count; ++i) x[i] *= float(std::pow(std::sin(double(i) * 6.2832 * 2 / 16000), 2));
  return x;
}

void append(Sound& to, const Sound& more) { to.insert(to.end(), more.begin(), more.end()); }

SoundLevels levels_of(const Sound& sound) {
  double loudest = -1000;
  return SoundLevels(sound, loudest);
}

TEST(SoundLevels, TellSilenceFromQuietSound) {
  EXPECT_TRUE(levels_of(Sound(16000, 0.0f)).silent());
  EXPECT_TRUE(levels_of(noise(16000, 5e-5f)).silent());
  EXPECT_FALSE(levels_of(speech(16000, 0.001f)).silent());
  double loudest = -1000;
  EXPECT_FALSE(SoundLevels(speech(16000, 0.9f), loudest).silent());
  EXPECT_TRUE(SoundLevels(noise(16000, 5e-4f), loudest).silent());  // beside such speech
  Sound late(16000, 0.0f);
  append(late, speech(16000, 0.1f));
  EXPECT_NEAR(double(levels_of(late).silent_frames()), 100, 3);
}

TEST(SoundLevels, DontHearAConstant) {
  double loudest = -1000, shifted_loudest = -1000;
  Sound sound = speech(32000, 0.3f);
  const SoundLevels plain(sound, loudest);
  for (float& x : sound) x += 0.4f;
  const SoundLevels shifted(sound, shifted_loudest);
  ASSERT_EQ(shifted.frames(), plain.frames());
  EXPECT_EQ(shifted.steady(), plain.steady());
  EXPECT_NEAR(shifted_loudest, loudest, 0.5);
  EXPECT_TRUE(SoundLevels(Sound(32000, 0.4f), shifted_loudest).silent());
}

TEST(SoundLevels, TellHumAndHissFromSpeech) {
  EXPECT_TRUE(levels_of(tone(48000, 0.3f)).steady());
  EXPECT_TRUE(levels_of(noise(160000, 0.2f)).steady());
  EXPECT_FALSE(levels_of(speech(48000, 0.3f)).steady());
  Sound noisy = speech(48000, 0.3f), hiss = noise(48000, 0.1f);
  for (size_t i = 0; i < noisy.size(); ++i) noisy[i] += hiss[i];
  EXPECT_FALSE(levels_of(noisy).steady());
  EXPECT_FALSE(levels_of(tone(4800, 0.3f)).steady());  // too short to tell
  Sound once = noise(160000, 0.01f);
  for (size_t i = 80000; i < 83000; ++i) once[i] *= 20;  // one word in ten seconds of hiss
  EXPECT_FALSE(levels_of(once).steady());
}

TEST(SoundLevels, LoudPartsAreFound) {
  Sound x = noise(32000, 0.001f);
  append(x, speech(16000, 0.3f));
  append(x, noise(32000, 0.001f, 2));
  const SoundLevels levels = levels_of(x);
  ASSERT_TRUE(levels.stands_out());
  EXPECT_NEAR(double(*levels.first_loud(0, 500)), 200, 6);
  EXPECT_NEAR(double(*levels.last_loud(0, 500)), 300, 6);
  EXPECT_FALSE(levels.first_loud(0, 150));
  EXPECT_FALSE(levels_of(noise(32000, 0.1f)).first_loud(0, 200));
}

TEST(SoundLevels, CutsAreInQuietPlaces) {
  Sound x = speech(160000, 0.3f);
  for (size_t i = 100000; i < 108000; ++i) x[i] *= 0.001f;
  const int64_t cut = levels_of(x).quietest(500, 1000);
  EXPECT_GT(cut, 625 + 9);
  EXPECT_LT(cut, 675 - 9);
  EXPECT_EQ(levels_of(Sound(160000, 0.0f)).quietest(500, 1000), 999);
  EXPECT_EQ(SoundLevels().quietest(5, 10), 0);
}

}  // namespace
}  // namespace consonant
