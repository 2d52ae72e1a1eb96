/** What may be repeated after a lost connection. */
const ATTEMPTS = 3;
const PAUSE = 400; // milliseconds, longer each time

/** The result of `request()`, repeated while its problem is `passing(problem)`, after the time that it names. */
export async function patiently(request, passing, attempts = ATTEMPTS) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await request();
    } catch (problem) {
      if (!passing(problem) || attempt === attempts) throw problem;
      const { retry_after: seconds } = problem.detail ?? {};
      await new Promise((resolve) => setTimeout(resolve, seconds ? seconds * 1000 : PAUSE * attempt));
    }
  }
}

export class NotLoaded extends Error {
  message = "Part of the page did not load. Try again.";
}

/** A module, later: `load(() => import("./name.js"))`; throws NotLoaded. */
export const load = (importing) =>
  patiently(importing, () => true, 2 * ATTEMPTS).catch(() => {
    throw new NotLoaded();
  });
