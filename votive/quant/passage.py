"""A short text of votive's own, on which models are compared where no other is given."""

from __future__ import annotations

PASSAGE = """The lighthouse at the end of the sand bar had been dark for eleven winters when the council sent a young
engineer to look at it. Her name was Ilse Brandt, and she arrived on a Tuesday with two suitcases, one of
which held nothing but tools. The harbour master, a patient man with a grey beard, met her at the ferry and
carried the heavier one.

"You will want to know why the lamp stopped," he said.

"I will want to know why nobody repaired it," she answered, and he laughed.

They walked along the dam while the tide went out. Mud flats opened on both sides, brown and silver, and
thousands of small birds ran over them in search of worms. The tower was forty metres high, built of bricks
that had once been red. Its door was not locked, because the lock had rusted away. Inside, a spiral staircase
of one hundred and ninety-two steps led to the lamp room. Ilse counted them twice, on the way up and on the
way down, since she never trusted a number she had seen only once.

The lamp itself was simple. A lens of polished glass, as tall as a child, stood on a ring of rollers; a weight
on a chain turned it, in the same way that a weight drives a clock. Somebody had taken the oil burner out and
replaced it with an electric bulb, and later somebody else had cut the cable. The bulb was whole. When she
held a battery to its contacts, it glowed, and a pale beam crossed the wall.

For the first week she cleaned. For the second week she measured: the resistance of the old wires, the wear of
the rollers, the angle of every prism. She wrote everything down in columns, because a fault that moves is
found by comparing columns. If the voltage at the foot of the tower was 230 and at the top only 190, then
forty volts were lost on the way, and where forty volts are lost, something grows warm. She found the place on
the third day, behind a panel: a joint, green with salt, that could be crumbled between two fingers.

In the evenings the harbour master brought soup and told stories. There had been a ship, he said, whose
captain steered by the sound of the bell buoy alone, on a night so thick with fog that the crew could not see
their own hands. There had been a winter in which the sea froze as far as the island, and children skated to
school. Ilse did not believe all of it, but she liked the way he told it: slowly, with pauses, as if he were
waiting for a translation.

"What do they teach you in the city?" he once asked.

"That most machines are honest," she said. "They do exactly what they were built to do, and then they do
exactly what they were damaged to do. People are harder."

By the end of the month the rollers turned again. They needed grease, and a new chain, and a counterweight
that she cast from scrap in the blacksmith's yard. The whole village came to the dam on the night of the test.
There was a band with two trumpets and a drum, there were sausages and paper lanterns, and the mayor had
prepared a speech of nine pages. He had reached page four when the lamp came on.

It did not flicker. The beam went out over the water, white and narrow, touched the island, touched the wreck
on the outer bank, and came back. One turn took thirty seconds, just as the old charts said. Far away, at the
edge of what could be seen, a fishing boat answered with its horn, three times, and the people on the dam
began to shout.

The mayor folded his pages and put them into his pocket. "I think," he said, "that this is better than what I
had written."

Ilse stayed another year. She taught two apprentices how to read a circuit diagram and how to listen to a
bearing, and she left them the notebook with the columns. On its first page she had written a rule for them:
measure before you replace anything, and after you have replaced it, measure again. The lighthouse has not
been dark since.
"""
