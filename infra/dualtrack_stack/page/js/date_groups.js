/** Conversations by date: Today, Yesterday, Previous 7 days, then by month. Pure. */

const DAY = 86_400_000;

const midnight = (at) => new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();

/** The name of a time's group, in the reader's time zone. */
export function groupName(at, now) {
  const days = Math.round((midnight(now) - midnight(at)) / DAY);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "Previous 7 days";
  return at.toLocaleDateString("en-GB", {
    month: "long",
    year: at.getFullYear() === now.getFullYear() ? undefined : "numeric",
  });
}

/**
 * `[{name, families}]` of the families of `families`, the latest first. A family has the date of its latest
 * member.
 */
export function groupsOf(families, now = new Date()) {
  const groups = [];
  for (const family of families) {
    const times = [family.root, ...family.branches].map((member) => Date.parse(member.listed_at));
    const name = groupName(new Date(Math.max(...times)), now);
    if (groups.at(-1)?.name !== name) groups.push({ name, families: [] });
    groups.at(-1).families.push(family);
  }
  return groups;
}
